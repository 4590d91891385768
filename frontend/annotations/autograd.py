"""Annotations of autograd: custom functions, and torch functions that train.

A custom function is an operator with a backward of its own. At calls of functions that
train the program is split: they run the autograd graph, transform functions, or torch
itself keeps compilers out of them. Split further inside, they would leave many parts.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any, Final

import torch
import torch.utils.checkpoint
from torch.autograd.function import FunctionCtx

from magweld.frontend.annotations.torch_functions import query
from magweld.frontend.annotations.transforms import inner_code
from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    Annotation,
    Entries,
    NativeCall,
    Result,
    Use,
    refused,
)
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.inner_gradients import check_gradients
from magweld.frontend.operators.targets import CustomFunction
from magweld.frontend.operators.tensors import PLAIN_TENSORS
from magweld.frontend.rules.functions import register_function
from magweld.frontend.rules.natives import record_operator
from magweld.frontend.session.session import Session
from magweld.frontend.state.attributes import note_class
from magweld.frontend.state.mro import class_dict
from magweld.frontend.state.refgraph import RefGraph
from magweld.graphs.gradients import inner_gradients


def _apply(observer: Observer, call: NativeCall) -> None:
    """Record one call of a custom function."""
    cls, *args = call.args
    _register(observer, cls)
    # The context is made by native code, the functions of the class see it first.
    observer.constructing = cls._backward_cls
    if torch.is_grad_enabled():
        _record_operator(observer, call)
        return
    # Nothing calls the backward: forward is a function like any other.
    for argument in args:
        if observer.session.operators.is_tensor(type(argument)):
            observer.session.operators.read_form(argument)
    merged = frozenset(observer.session.graph.choices.merged)
    observer.after = functools.partial(_adopt_results, args, merged)


def _register(observer: Observer, cls: Any) -> None:
    """Record what the functions of the class are that native code is about to call."""
    graph = observer.session.graph
    for name in ("forward", "setup_context"):
        found = note_class(graph, cls, name)
        function = found.__func__ if type(found) in _WRAPPERS else found
        if type(function) is not FunctionType:
            raise StopRecordingError("custom-function", f"{name} is no function")
        graph.constant(function)
        register_function(observer.session, function)


_WRAPPERS: Final = (staticmethod, classmethod)


def _adopt_results(
    args: list[Any], merged: frozenset[int], observer: Observer, stack: list[Any]
) -> None:
    """Take what forward has returned; an argument comes back as a view of itself."""
    observer.constructing = None
    session, result = observer.session, stack[-1]
    session.graph.adopt(result)
    tensors = result if type(result) is tuple else (result,)
    chosen = session.graph.choices.merged - merged
    if any(id(obj) in chosen for obj in (*tensors, *args)):
        # Whether an argument comes back would depend on the branch.
        raise StopRecordingError("tensor-value", "a branch decides what forward gives")
    for tensor in tensors:
        if session.operators.is_tensor(type(tensor)):
            session.operators.take_alias(tensor, args)


def _record_operator(observer: Observer, call: NativeCall) -> None:
    """Record the call as one operator.

    A hit calls the class again, so that its backward is the user's. What the forward
    function reads is observed and guarded, but it must not change anything: a hit would
    do so twice. It must not use what was changed before it either, since effects are
    repeated after the graph.
    """
    cls, *args = call.args
    session = observer.session
    session.graph.choices.sealed = _written(session.graph)
    before = _effects(session)
    target = CustomFunction(cls)
    # Numbers among the arguments are aligned with what the instruction takes.
    observer.awaits_operator = call.name
    session.operators.open(target, tuple(args), call.kwargs, watched=True)

    def close(observer: Observer, stack: list[Any]) -> None:
        observer.constructing = None
        observer.awaits_operator = ""
        session.graph.choices.sealed = frozenset()
        if _effects(session) != before:
            raise StopRecordingError("custom-function", "forward writes state")
        session.operators.close(stack[-1])

    observer.after = close


def _written(graph: RefGraph) -> frozenset[int]:
    """Return the ids of the objects from before the run that it has changed."""
    return frozenset(id(node.obj) for node in graph.written())


def _effects(session: Session) -> tuple[Any, ...]:
    graph = session.graph
    done = (len(graph.advances), len(graph.draws), len(session.effects))
    return (_written(graph), *done)


def _gradients(observer: Observer, call: NativeCall) -> None:
    """Record `torch.autograd.grad` as one operator, where it is one of the run."""
    nodes = observer.session.graph.nodes.values()
    older = [x.obj for x in nodes if x.external and type(x.obj) in PLAIN_TENSORS]
    with torch._C.DisableTorchFunction():
        check_gradients(call.args, call.kwargs, older)
    record_operator(observer, call.name, inner_gradients, call.args, call.kwargs)


_KEEPS: Final = Annotation(rest=Use.KEEP)
_CONTEXT: Final = (
    "mark_dirty",
    "mark_non_differentiable",
    "save_for_backward",
    "save_for_forward",
    "set_materialize_grads",
)

AUTOGRAD: Final[Entries] = (
    (class_dict(torch._C._FunctionBase)["apply"], _apply),
    # Follows from the gradient flags of the arguments, which are guarded.
    (
        class_dict(torch._C._FunctionBase)["needs_input_grad"],
        Annotation(rest=Use.KEEP, result=Result.FRESH),
    ),
    *((getattr(FunctionCtx, name), _KEEPS) for name in _CONTEXT),
    (
        torch._functorch.utils.unwrap_dead_wrappers,
        Annotation(rest=Use.CONTENT, result=Result.FRESH),
    ),
    (
        torch._C._are_functorch_transforms_active,
        query(torch._C._are_functorch_transforms_active),
    ),
)


_BACKWARD: Final = (
    torch.Tensor.backward,
    torch.autograd.backward,
    torch.nn.utils.clip_grad_norm_,
    torch.nn.utils.clip_grad_value_,
)

TRAINING: Final[Entries] = (
    (torch.autograd.grad, _gradients),
    *((function, refused("autograd-graph")) for function in _BACKWARD),
    # By code, as the decorators make a function for each use: those of the optimizers'
    # steps, and of all that `torch.compile` leaves out.
    (inner_code(torch.optim.Optimizer.profile_hook_step), refused("autograd-graph")),
    (torch.utils.checkpoint.checkpoint.__code__, refused("native-call")),
)
