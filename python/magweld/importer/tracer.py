"""Owns the tracing of torch calls into a graph of ATen operators.

It does what `torch.fx.experimental.proxy_tensor.make_fx` does for tensors without data
and constant sizes, and nothing to the process: no method of a class is replaced while
it runs, so other threads may run modules, trace and compile meanwhile.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, fx
from torch._ops import OpOverload
from torch._subclasses import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from magweld.importer.halves import parts_in_single_precision
from magweld.importer.nodes import RECORDED, RUNS_FOR_ITSELF, runs_for_itself
from magweld.importer.refusals import recorded_name
from magweld.paced import checkpoint

aten = torch.ops.aten

# They tell the form of a tensor.
_READS: Final = frozenset(
    {aten.size.default, aten.stride.default, aten.storage_offset.default}
)

Decompositions = Mapping[OpOverload, Callable[..., Any]]
# The recorded node whose operators are being traced, None for none.
Source = Callable[[], fx.Node | None]


def trace_aten(
    run: Callable[..., Any], inputs: Sequence[Tensor], recorder: Recorder
) -> fx.GraphModule:
    """Return the ATen operators that a function calls.

    Args:
        run: The function; what it returns may be nested.
        inputs: Its arguments, tensors without data.
        recorder: A new one; it keeps the operators.

    Raises:
        Exception: What `run` raises.
    """
    for number, tensor in enumerate(inputs):
        recorder.add_input(f"arg{number}_1", tensor)
    # Casts that autocast keeps from earlier would be tensors that nobody has traced.
    cached = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        with recorder.mode, recorder:
            result = run(*inputs)
    finally:
        torch.set_autocast_cache_enabled(cached)
    return recorder.finish(result)


@dataclass(frozen=True)
class Recorded:
    """The nodes that one call has made, and those that it reads and results in.

    Attributes:
        nodes: What it has made, in order.
        operands: The nodes of its tensors, in order.
        results: The nodes of its results, all made by it.
    """

    nodes: tuple[fx.Node, ...]
    operands: tuple[fx.Node, ...]
    results: tuple[fx.Node, ...]


class Recorder(TorchDispatchMode):
    """Records the operators that reach the level below autograd.

    Attributes:
        mode: What the tensors without data are made in.
        nodes: What was recorded so far, in order.

    Args:
        mode: What the tensors without data are made in.
        decompositions: Operators that are taken apart, and how.
        source: Tells which recorded node is being run.
    """

    def __init__(
        self, mode: FakeTensorMode, decompositions: Decompositions, source: Source
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.mode = mode
        self.nodes: list[fx.Node] = []
        # What the next tensor that is made stands for.
        self._awaited: fx.Node | None = None
        self._decompositions = decompositions
        self._source = source
        self._root = torch.nn.Module()
        self._graph = fx.Graph()
        # By the tensor's address; it is kept so that no other gets that address.
        self._nodes: dict[int, tuple[Tensor, fx.Node]] = {}
        self._constants = 0

    def add_input(self, name: str, tensor: Tensor) -> None:
        """Add a placeholder for a tensor."""
        self._is(tensor, self._graph.placeholder(name))

    def finish(self, result: Any) -> fx.GraphModule:
        """Return the graph, whose output is a result of what was traced."""
        self._graph.output(pytree.tree_map_only(Tensor, self._node_of, result))
        return fx.GraphModule(self._root, self._graph)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.prim.device.default:
            return func(*args, **kwargs)
        if self._awaited is not None:
            result = func(*args, **kwargs)
            self._is(result, self._awaited)
            return result
        for parts in self._ways_apart(func, args, kwargs):
            with self:
                result = parts(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return self._record(func, args, kwargs)

    def node_of(self, tensor: Tensor) -> fx.Node | None:
        """Return the node that a tensor stands for now, below the tracing of writes.

        None if it has none yet, or if values of it are known.
        """
        if torch._is_functional_tensor(tensor):
            torch._sync(tensor)  # type: ignore[attr-defined,no-untyped-call]
            tensor = torch._from_functional_tensor(tensor)
        if getattr(tensor, "constant", None) is not None:
            return None
        _, node = self._nodes.get(id(tensor), (None, None))
        return node

    def repeat(
        self,
        recorded: Recorded,
        operands: Sequence[fx.Node],
        makers: Sequence[Callable[[], Tensor]],
    ) -> list[Tensor]:
        """Record a call like one before, and return what it results in.

        Args:
            recorded: What the other call has recorded.
            operands: The nodes of the tensors of this one.
            makers: Make a tensor without data for each result.
        """
        copies = dict(zip(recorded.operands, operands, strict=True))
        for node in recorded.nodes:
            checkpoint()
            args, kwargs = fx.map_arg((node.args, node.kwargs), copies.__getitem__)
            copy = self._create(node.target, args, kwargs)
            copy.meta["val"] = node.meta["val"]
            copies[node] = copy
        return [
            self._made(make, copies[node])
            for make, node in zip(makers, recorded.results, strict=True)
        ]

    def _made(self, make: Callable[[], Tensor], node: fx.Node) -> Tensor:
        self._awaited = node
        try:
            return make()
        finally:
            self._awaited = None

    def _create(self, target: Any, args: Any, kwargs: Any) -> fx.Node:
        """Record a call with the name that torch gives it."""
        named = getattr(target, "overloadpacket", target)
        name = self._graph._target_to_str(named.__name__)
        node = self._graph.create_node("call_function", target, args, kwargs, name)
        self._note_source(node)
        self.nodes.append(node)
        return node

    def _ways_apart(
        self, func: Any, args: Any, kwargs: Any
    ) -> Iterator[Callable[..., Any]]:
        widened = parts_in_single_precision(func, args, kwargs)
        if widened is not None:
            yield widened
        if func in self._decompositions:
            yield self._decompositions[func]
        if func not in _READS and not _has_kernel(func, args):
            yield func.decompose

    def _record(self, func: Any, args: Any, kwargs: Any) -> Any:
        checkpoint()
        result = func(*args, **kwargs)
        returns = bool(func._schema.returns)
        if returns and not any(map(torch.is_tensor, pytree.tree_leaves(result))):
            # A number that is known without data; it is part of what follows.
            return result
        if func is aten.lift_fresh.default:
            # What it gives may be written to, and a constant of the graph must not.
            func = aten.lift_fresh_copy.default
        positions, names = pytree.tree_map_only(Tensor, self._node_of, (args, kwargs))
        self._are(result, self._create(func, positions, names))
        return result

    def _note_source(self, node: fx.Node) -> None:
        source = self._source()
        if source is None:
            return
        if runs_for_itself(source):
            node.meta[RUNS_FOR_ITSELF] = True
        node.meta[RECORDED] = recorded_name(source)
        for key in ("stack_trace", "nn_module_stack"):
            if key in source.meta:
                node.meta[key] = source.meta[key]

    def _is(self, tensor: Tensor, node: fx.Node) -> None:
        node.meta["val"] = tensor
        self._nodes[id(tensor)] = (tensor, node)

    def _are(self, result: Any, node: fx.Node) -> None:
        """Take note that a node stands for a result, a tensor or several."""
        if isinstance(result, Tensor):
            self._is(result, node)
            return
        node.meta["val"] = result
        if not isinstance(result, tuple | list):
            return
        for number, part in enumerate(result):
            self._are(part, self._create(operator.getitem, (node, number), {}))

    def _node_of(self, tensor: Tensor) -> fx.Node:
        found = self._nodes.get(id(tensor))
        if found is not None:
            return found[1]
        name = f"_tensor_constant{self._constants}"
        self._constants += 1
        setattr(self._root, name, tensor)
        node = self._graph.get_attr(name)
        self._nodes[id(tensor)] = (tensor, node)
        node.meta["val"] = self.mode.from_tensor(tensor, static_shapes=True)
        return node


def _has_kernel(func: OpOverload, args: Any) -> bool:
    """Whether a device has code of its own for an operator that torch can take apart.

    Autograd takes an operator apart otherwise; in inference mode it does not see it.
    """
    if not _knows(func, "CompositeImplicitAutograd"):
        return True
    leaves = pytree.tree_leaves(args)
    tensor = next((leaf for leaf in leaves if isinstance(leaf, Tensor)), None)
    if tensor is None:
        return False
    return _knows(func, torch._C._dispatch_key_for_device(tensor.device.type))


def _knows(func: OpOverload, key: str) -> bool:
    name: str = func.name()  # type: ignore[no-untyped-call]
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
