"""Annotations of custom autograd functions: an operator with a backward of its own."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.autograd.function import FunctionCtx

from magweld.frontend.annotations.model import (
    Annotation,
    Entry,
    NativeCall,
    Result,
    Use,
)
from magweld.frontend.annotations.torch_functions import query
from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.targets import CustomFunction
from magweld.frontend.rules.functions import note_class, register_function
from magweld.frontend.state.mro import class_dict

if TYPE_CHECKING:
    from magweld.frontend.monitor.observer import Observer


def _apply(observer: Observer, call: NativeCall) -> None:
    """Record one call of a custom function as one operator.

    A hit calls the class again, so that its backward is the user's. What the forward
    function reads is observed and guarded, but it must not change anything: a hit would
    do so twice. Nothing may have been changed before it either, since effects are
    repeated after the graph.
    """
    session = observer.session
    cls, *args = call.args
    _require_no_effects(observer, "state was written before")
    forward = note_class(session.graph, cls, "forward")
    if type(forward) is not staticmethod or type(forward.__func__) is not FunctionType:
        raise StopRecordingError("custom-function", "forward is no static method")
    session.graph.constant(forward.__func__)
    register_function(session, forward.__func__)
    target = CustomFunction(cls)
    session.operators.open(target, tuple(args), call.kwargs, watched=True)
    # The context is made by native code, forward is the first to see it.
    observer.constructing = cls._backward_cls
    observer.awaits_operator = call.name
    observer.after = _close


def _close(observer: Observer, stack: list[Any]) -> None:
    observer.constructing = None
    observer.awaits_operator = ""
    _require_no_effects(observer, "forward writes state")
    observer.session.operators.close(stack[-1])


def _require_no_effects(observer: Observer, detail: str) -> None:
    graph = observer.session.graph
    if graph.snapshots or graph.slot_snapshots:
        raise StopRecordingError("custom-function", detail)


_KEEPS: Final = Annotation(rest=Use.KEEP)
_CONTEXT: Final = (
    "mark_dirty",
    "mark_non_differentiable",
    "save_for_backward",
    "save_for_forward",
    "set_materialize_grads",
)

AUTOGRAD: Final[tuple[tuple[Any, Entry], ...]] = (
    (class_dict(torch._C._FunctionBase)["apply"], _apply),
    # Follows from the gradient flags of the arguments, which are guarded.
    (
        class_dict(torch._C._FunctionBase)["needs_input_grad"],
        Annotation(rest=Use.KEEP, result=Result.FRESH),
    ),
    *((getattr(FunctionCtx, name), _KEEPS) for name in _CONTEXT),
    (
        torch._functorch.utils.unwrap_dead_wrappers,
        Annotation(rest=Use.KEEP, result=Result.FRESH),
    ),
    (
        torch._C._are_functorch_transforms_active,
        query(torch._C._are_functorch_transforms_active),
    ),
)
