"""Annotations of TorchScript: a scripted function, or method, is an operator.

What a method reads of its module are inputs of the graph, as in a lowered graph of
TorchScript: a hit finds the tensors that the module has then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import torch

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import Entries, NativeCall
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.natives import record_operator
from magweld.frontend.state.mro import ABSENT, class_dict
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_scalar

# Instructions beside operators that do nothing but compute.
_COMPUTES: Final = frozenset(
    f"prim::{name}"
    for name in (
        "CallFunction Constant DictConstruct DictIndex If ListConstruct ListUnpack Loop"
        " NumToTensor RaiseException TupleConstruct TupleIndex TupleSlice TupleUnpack"
        " Uninitialized device dtype isinstance layout max min unchecked_cast"
        " unchecked_unwrap_optional"
    ).split()
)
_READ: Final = "prim::GetAttr"
_TENSORS: Final = (torch.Tensor, torch.nn.Parameter)


class AttributeOfScript:
    """Reads an attribute of the module that a scripted method belongs to.

    Args:
        path: The names that lead to it.
    """

    def __init__(self, path: tuple[str, ...]) -> None:
        self._path = path
        self.__name__ = f"owner.{'.'.join(path)}"

    def __call__(self, method: Any) -> Any:
        """Return it; nothing else is equal to what stands for one that is not there."""
        found = method.owner
        for name in self._path:
            if not found.hasattr(name):
                return ABSENT
            found = found.getattr(name)
        return found


def _function(observer: Observer, call: NativeCall) -> None:
    """A call of what `torch.jit.script` or `torch.jit.trace` makes of a function."""
    function, *args = call.args
    _check(function.inlined_graph, frozenset())
    record_operator(observer, call.name, function, tuple(args), call.kwargs)


def _method(observer: Observer, call: NativeCall) -> None:
    """A call of a method of a scripted module."""
    method, *args = call.args
    if call.kwargs:
        raise StopRecordingError("native-call", f"{call.name} with keywords")
    _check(method.inlined_graph, frozenset({_READ}))
    observer.session.graph.hold(method)
    function, tensors = _lowered(observer.session.graph, method)
    record_operator(observer, call.name, function, (*args, *tensors), {})


def _lowered(refs: RefGraph, method: Any) -> tuple[Any, list[torch.Tensor]]:
    """Return a method as a function, and the tensors that it takes behind its own.

    What else it reads of its module is guarded, and a constant of the function.
    """
    graph = method.inlined_graph.copy()
    tensors: dict[tuple[str, ...], tuple[Any, torch.Tensor]] = {}
    reads = [node for node in _nodes(graph) if node.kind() == _READ]
    root = next(iter(graph.inputs())).debugName()
    paths: dict[str, tuple[str, ...]] = {root: ()}
    for node in reads:
        output = node.output()
        path = (*paths[node.input().debugName()], node.s("name"))
        paths[output.debugName()] = path
        if isinstance(output.type(), torch._C.ClassType):
            continue
        value = _read(refs, method, path)
        if type(value) in _TENSORS:
            if path not in tensors:
                tensors[path] = graph.addInput(), value
                tensors[path][0].setType(output.type())
            output.replaceAllUsesWith(tensors[path][0])
        else:
            with graph.insert_point_guard(node):
                output.replaceAllUsesWith(graph.insertConstant(value))
    for node in reversed(reads):
        node.destroy()
    graph.eraseInput(0)
    function = torch._C._create_function_from_graph(method.name, graph)
    return function, [tensor for _, tensor in tensors.values()]


def _read(refs: RefGraph, method: Any, path: tuple[str, ...]) -> Any:
    """Record that a method reads an attribute, and return that.

    Raises:
        StopRecordingError: It is neither a tensor nor a number.
    """
    read = AttributeOfScript(path)
    value = read(method)
    if type(value) not in _TENSORS and not is_scalar(value):
        raise StopRecordingError("native-call", f"scripted code reads {path[-1]}")
    kind = Kind.DATA if type(value) in _TENSORS else Kind.ANSWER
    refs.read(refs.require(method), kind, read, value)
    return value


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _check(graph: Any, others: frozenset[str]) -> None:
    """Refuse TorchScript that may do more than to compute.

    Args:
        others: What else it may do.
    """
    for node in _nodes(graph):
        kind = node.kind()
        if not kind.startswith("aten::") and kind not in _COMPUTES | others:
            raise StopRecordingError("native-call", f"{kind} in scripted code")


SCRIPTED: Final[Entries] = (
    (class_dict(torch.jit.ScriptFunction)["__call__"], _function),
    (class_dict(torch._C.ScriptMethod)["__call__"], _method),
)
