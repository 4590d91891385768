"""Annotations of transforms of `torch.func`: what torch runs for one is in the graph.

The functions that they transform are observed, and torch's own code is left alone. The
operators that the graph gets are those that are left when all transforms are done.
"""

from __future__ import annotations

import sys
from types import BuiltinFunctionType, CellType, CodeType, FrameType, FunctionType
from typing import Any, Final

import torch
from torch import Tensor
from torch.overrides import _get_current_function_mode_stack
from torch.utils import _pytree as pytree

from magweld.frontend.annotations.checkpoints import function_of
from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    Annotation,
    Entries,
    NativeCall,
    Use,
    refused,
)
from magweld.frontend.monitor.code_table import VARIADIC
from magweld.frontend.monitor.hooks import Shown
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.below import refuse_gradients
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.rules.attributes import adopt_top
from magweld.frontend.rules.functions import register_function
from magweld.frontend.rules.natives import prepare_callback
from magweld.frontend.rules.protocols import read_value
from magweld.frontend.session.session import Session
from magweld.frontend.state.nodes import Kind

_FUNCTION: Final = "func"  # the variable in which a transform keeps what it transforms


def inner_code(function: Any) -> CodeType:
    """Return the code of the functions that a decorator or a transform makes."""
    return next(
        item for item in function.__code__.co_consts if isinstance(item, CodeType)
    )


# They return functions, which are called later, or transform at once.
_MAKERS: Final = {
    inner_code(getattr(torch.func, name)): f"torch.func.{name}"
    for name in ("grad", "grad_and_value", "jacfwd", "jacrev", "vmap")
}


def _transform(observer: Observer, call: NativeCall) -> None:
    """The call of a function that a transform has made, or of `torch.func.jvp`."""
    session, function = observer.session, call.function
    name = _MAKERS.get(function.__code__, call.name)
    recorder = _check(session, name)
    if function.__code__ in _MAKERS:
        inner, args = _innermost(observer, function), call.args
    else:
        inner, args = call.args[0], call.args[1:]
    # Torch loses its state where the recording of `jvp` ends at its first operator.
    gradients = torch.is_grad_enabled() and not recorder.records_below
    refuse_gradients(gradients, (args, call.kwargs))
    for value in (*args, *call.kwargs.values()):
        if not session.operators.is_tensor(type(value)):
            read_value(observer, value)
    observer.calls_native = True
    shown = _shown(observer, inner, name)
    session.shown.append(shown)
    within = recorder.records_below
    if within:
        recorder.follow(False)
    else:
        recorder.record_below(True)
        # Forms of what is taken are read by code that is not observed.
        for value in _tensors(args, call.kwargs):
            recorder.tensors.node(value)
    observer.awaits_operator = name
    session.begin_transform(observer.frame)

    def finish(observer: Observer, stack: list[Any]) -> None:
        observer.awaits_operator = ""
        session.end_transform(observer.frame)
        session.shown.pop()
        _adopt(session, stack[-1])
        if within:
            recorder.follow(True)
            return
        for value in _tensors(stack[-1]):
            recorder.tensors.node(value)
            if value.requires_grad and recorder.tensors.is_own(value):
                raise StopRecordingError("autograd-graph", name)
        recorder.record_below(False)

    observer.after = finish


def _tensors(*values: Any) -> list[Tensor]:
    return [x for x in pytree.tree_leaves(values) if isinstance(x, Tensor)]


def _shown(observer: Observer, inner: Any, name: str) -> Shown:
    """Return what is observed of a transform: the function, or nothing of native code.

    Raises:
        StopRecordingError: Native code is no operator.
    """
    session = observer.session
    if type(inner) is BuiltinFunctionType and session.operators.is_operator(inner):
        return Shown(observer, inner)
    if prepare_callback(observer, inner):
        raise StopRecordingError("native-call", f"{name} of native code")
    return Shown(observer, function_of(inner), _Arguments(session).adopt)


def _check(session: Session, name: str) -> OperatorRecorder:
    """Return the recorder, where it may follow what runs below a transform.

    Raises:
        StopRecordingError: It may not.
    """
    recorder = session.operators
    assert isinstance(recorder, OperatorRecorder), "operators are recorded"
    opaque = recorder.in_opaque and not recorder.records_below
    if session.in_branch or opaque:
        raise StopRecordingError("native-call", name)
    if session.graph.lifting is not None:
        # What is asked for inside is not followed to the sizes of inputs.
        session.graph.lifting.untold = name
    if any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
        raise StopRecordingError("native-call", f"{name} in autocast")
    if torch.is_anomaly_enabled():
        # Autograd looks at gradients below transforms, where torch lets no mode see.
        raise StopRecordingError("native-call", f"{name} in the search for anomalies")
    return recorder


def _innermost(observer: Observer, function: FunctionType) -> Any:
    """Return what a transform transforms in the end, and record what it consists of.

    Raises:
        StopRecordingError: A variable of its is not set.
    """
    graph, inner = observer.session.graph, None
    register_function(observer.session, function)
    names = function.__code__.co_freevars
    for variable, cell in zip(names, function.__closure__ or (), strict=True):
        value = cell.cell_contents
        graph.read(graph.require(cell), Kind.CELL, None, value)
        if variable == _FUNCTION:
            inner = value
        elif not callable(value):
            read_value(observer, value)
    if type(inner) is FunctionType and inner.__code__ in _MAKERS:
        return _innermost(observer, inner)
    return inner


class _Arguments:
    """The arguments of a function that a transform runs: torch has made them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def adopt(self, frame: FrameType) -> None:
        """Register those of a frame that begins."""
        code = frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount
        for slot in range(count + (code.co_flags & VARIADIC).bit_count()):
            value = self._session.reader.slot(frame, slot)
            if type(value) is CellType:
                value = value.cell_contents
            _adopt(self._session, value)


def _adopt(session: Session, value: Any) -> None:
    """Register a value and all in it that nothing else explains."""
    kind = type(value)
    if session.operators.is_tensor(kind):
        session.graph.adopt(value)
    elif kind in (tuple, list, dict):
        session.graph.adopt(value)
        for item in value.values() if kind is dict else value:
            _adopt(session, item)


_MODULE: Final = "torch._dynamo._trace_wrapped_higher_order_op"
_MODE: Final = "TransformGetItemToIndex"
_modes: Final[Any] = _get_current_function_mode_stack


def _is_known(mode: Any) -> bool:
    """Return whether a mode is the one of torch that makes numbers of indices."""
    return type(mode) is vars(sys.modules.get(_MODULE, sys)).get(_MODE)


def _push_mode(observer: Observer, call: NativeCall) -> None:
    if not all(map(_is_known, call.args)):
        raise StopRecordingError("native-call", call.name)

    def check() -> None:
        modes: list[Any] = _modes()
        if any(one is mode for one in modes for mode in call.args):
            raise StopRecordingError("native-call", f"{call.name}, which stays")

    observer.session.graph.checks.append(check)


def _pop_mode(observer: Observer, call: NativeCall) -> None:
    depth = torch._C._len_torch_function_stack()
    if not depth or not _is_known(torch._C._get_function_stack_at(depth - 1)):
        raise StopRecordingError("native-call", call.name)
    observer.after = adopt_top


TRANSFORMS: Final[Entries] = (
    *((code, _transform) for code in _MAKERS),
    (torch.func.jvp, _transform),
    (
        inner_code(torch.func.functionalize),
        refused("native-call", "torch.func.functionalize"),
    ),
    (torch.func.linearize, refused("native-call")),
    (torch.func.vjp, refused("native-call")),
    (torch._C._push_on_torch_function_stack, _push_mode),
    (torch._C._pop_torch_function_stack, _pop_mode),
)


def mode_entries() -> Entries:
    """Return the entry of the mode's handler, if its module has been imported."""
    mode = vars(sys.modules.get(_MODULE, sys)).get(_MODE)
    keeps = Annotation(rest=Use.KEEP)
    return () if mode is None else ((vars(mode)["__torch_function__"], keeps),)
