"""Annotations of torch functions that are no operators, switches of autocast too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType, MethodDescriptorType, WrapperDescriptorType
from typing import Any, Final

import torch
import torch.overrides
from torch.cuda.graphs import is_current_stream_capturing

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    Annotation,
    Entries,
    Entry,
    NativeCall,
    Result,
    Rule,
    Use,
)
from magweld.frontend.monitor.observer import After, Observer
from magweld.frontend.operators.tensors import PLAIN_TENSORS
from magweld.frontend.rules.natives import record_operator
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.values import is_scalar
from magweld.graphs.autocast import leave_autocast

# Answers follow from modes of torch that every record guards, or from the arguments.
_FOLLOWS: Final = Annotation(rest=Use.KEEP)
_FOLLOWING: Final = (
    "_get_deterministic_algorithms _get_tracing_state _is_inference_mode_enabled"
    " _is_torch_function_all_disabled _is_torch_function_enabled _is_tracing"
    " _log_api_usage_once get_default_dtype is_anomaly_enabled is_autocast_available"
    " is_grad_enabled is_inference_mode_enabled"
).split()

# These see the modes that observe the run. What torch's own functions do then is
# recorded as one operator, be it with modes or without.
_MODES: Final = (
    "_has_torch_function _has_torch_function_unary _has_torch_function_variadic"
    " _len_torch_dispatch_stack _len_torch_function_stack handle_torch_function"
    " has_torch_function has_torch_function_unary has_torch_function_variadic"
).split()


def within_torch(annotation: Annotation) -> Rule:
    """Return the rule of a function that may tell torch, but not the program, of modes.

    Args:
        annotation: What is recorded of a call.
    """

    def rule(observer: Observer, call: NativeCall) -> None:
        session = observer.session
        if not observer.code.co_filename.startswith(session.operators.library):
            raise StopRecordingError("native-call", call.name)
        place = _place_of(observer.code)
        if place == _ATTENTION:
            _hide_modes(observer, call)
            session.apply(observer, annotation, call)
            observer.after = _shown_again(observer.after)
            return
        observer.stays_whole = True
        if place == _ENCODER:
            _check_path(call)
        session.apply(observer, annotation, call)

    return rule


def _hide_modes(observer: Observer, call: NativeCall) -> None:
    """Have a call find no modes, and none of the tensors to be of another class.

    Raises:
        StopRecordingError: One is.
    """
    (tensors,) = call.args
    plain = {*PLAIN_TENSORS, type(None)}
    if type(tensors) is not tuple or not plain.issuperset(map(type, tensors)):
        raise StopRecordingError("native-call", call.name)
    observer.session.operators.hide_modes()


def _shown_again(after: After | None) -> After:
    """Return what is done behind a call that was to find no modes."""

    def show(observer: Observer, stack: list[Any]) -> None:
        observer.session.operators.show_modes()
        if after is not None:
            after(observer, stack)

    return show


def _unseen(observer: Observer, call: NativeCall) -> None:
    """An operator that torch shows to no mode, and fails in where there is one."""
    observer.session.operators.hide_modes()
    record_operator(observer, call.name, torch.range, call.args, call.kwargs)
    observer.after = _shown_again(observer.after)


def _place_of(code: CodeType) -> tuple[str, int]:
    """Return where a function is written, also that of code which continues it."""
    return code.co_filename, code.co_firstlineno


# Its results depend on the answer: without modes, what is padded becomes zero.
_ENCODER: Final = _place_of(torch.nn.TransformerEncoder.forward.__code__)


# Its results lie otherwise in memory where there are modes.
_ATTENTION: Final = _place_of(torch.nn.MultiheadAttention.forward.__code__)


def _check_path(call: NativeCall) -> None:
    """Refuse an encoder that would leave padding out, unless it trains.

    Raises:
        StopRecordingError: It would.
    """
    with torch._C.DisableTorchFunction():
        flags = [getattr(one, "requires_grad", False) for one in call.args[0]]
    if not (torch.is_grad_enabled() and any(flags)):
        raise StopRecordingError("native-call", f"{call.name} of an encoder")


# Answers follow from process-wide flags; each is asked again on every call.
_QUERIES: Final = (
    "_accelerator_getAccelerator _cuda_getDeviceCount _cuda_isInBadFork"
    " _get_cpu_capability _get_cublas_allow_tf32 _get_cudnn_allow_tf32"
    " _get_cudnn_benchmark _get_cudnn_deterministic _get_cudnn_sdp_enabled"
    " _get_float32_matmul_precision get_num_interop_threads get_num_threads"
    " _is_any_autocast_enabled _is_autocast_available _get_cudnn_enabled"
    " _get_default_device _get_deterministic_algorithms_warn_only"
    " _get_flash_sdp_enabled _get_graph_exec_group _get_math_sdp_enabled"
    " _get_mem_efficient_sdp_enabled _get_mkldnn_enabled _get_privateuse1_backend_name"
    " _is_fwd_grad_enabled get_autocast_dtype is_autocast_cache_enabled"
    " is_autocast_enabled"
).split()


def query(native: Any) -> Entry:
    """Return the entry of a native function that tells a process-wide flag.

    The function has no effects and takes scalars; its answer is guarded.
    """

    def rule(observer: Observer, call: NativeCall) -> None:
        if call.kwargs or not all(is_scalar(item) for item in call.args):
            raise StopRecordingError("native-call", call.name)

        def note(observer: Observer, stack: list[Any]) -> None:
            graph = observer.session.graph
            graph.read(graph.constant(native), Kind.QUERY, call.args, stack[-1])

        observer.after = note

    return rule


# A class that raises where torch was built without CUDA.
_HAS_CUDA: Final = torch.version.cuda is not None or torch.version.hip is not None
_CAPTURE: Final = ("_cuda_isCurrentStreamCapturing",) * _HAS_CUDA
_cuda: Any = torch.cuda  # some of its functions have no types


def _captures() -> bool:
    """Return whether a CUDA graph is captured; asking CUDA takes long without a driver.

    Where no device is in use nothing is captured, and what torch says of that, or that
    it raises, follows from the machine.
    """
    return bool(_cuda.is_initialized() and is_current_stream_capturing())


def _of_capture(observer: Observer, call: NativeCall) -> None:
    """A question about the capture of a CUDA graph, which may raise."""
    graph = observer.session.graph
    graph.read(graph.constant(_captures), Kind.QUERY, (), _captures())


def _named(names: Iterable[str]) -> Iterator[Any]:
    for module in (torch._C, torch, torch.overrides):
        yield from (getattr(module, name) for name in names if hasattr(module, name))


TORCH: Final[Entries] = (
    *((native, _FOLLOWS) for native in _named(_FOLLOWING)),
    *((native, query(native)) for native in _named(_QUERIES)),
    # Sets of tensors tell them apart by identity, which is guarded.
    (torch.Tensor.__hash__, Annotation(rest=Use.KEEP, result=Result.ADDRESS)),
    *((function, within_torch(_FOLLOWS)) for function in _named(_MODES)),
    # It looks for a mode of torch's exporter.
    (torch.nn.modules.activation._is_make_fx_tracing, _FOLLOWS),
    (torch.range, _unseen),
    *((native, _of_capture) for native in _named(_CAPTURE)),
    # Operators that torch looks up when it shows them to modes.
    (type(torch.ops.aten).__getattr__, _FOLLOWS),
    (torch.device, Annotation()),
    (torch.finfo, Annotation()),
    (torch.iinfo, Annotation()),
    (torch.dtype.to_complex, Annotation()),
    (torch.dtype.to_real, Annotation()),
    (torch.Size, Annotation((Use.CONTENT,), result=Result.FRESH)),
    *(
        (method, Annotation((Use.CONTENT,), result=Result.FRESH))
        for method in vars(torch.Size).values()
        if type(method) in (WrapperDescriptorType, MethodDescriptorType)
    ),
)


# Operators between switches of autocast are recorded as the program wrote them; a hit
# enters the region itself, so torch casts as it did, gradients included.

# What the two devices that are guarded on entry are called by default.
_DEFAULT_DEVICE: Final = "cuda"


def _switch(setter: Any, *getters: Any, recorded: Any = None) -> tuple[Any, Rule]:
    """Return the entry of a setter; what the getters say follows from it from now on.

    Args:
        setter: Takes a device, if it has two arguments, and a value.
        *getters: Take the same device.
        recorded: What the graph calls in its place.
    """

    def rule(observer: Observer, call: NativeCall) -> None:
        graph = observer.session.graph
        if call.kwargs or len(call.args) > 2:
            raise StopRecordingError("native-call", call.name)
        if not all(is_scalar(x) or type(x) is torch.dtype for x in call.args):
            raise StopRecordingError("native-call", call.name)
        devices = call.args[:1] if len(call.args) == 2 else ()
        for getter in getters:
            written = graph.constant(getter).written
            written[devices] = False
            if devices == (_DEFAULT_DEVICE,):
                written[()] = False
        func = setter if recorded is None else recorded
        record_operator(observer, call.name, func, call.args, {})

    return (setter, rule)


def _clear(observer: Observer, call: NativeCall) -> None:
    """`clear_autocast_cache`, which the end of the last region has done before."""
    if observer.session.operators.last != leave_autocast.__name__:
        raise StopRecordingError("native-call", call.name)


_ANY: Final = torch._C._is_any_autocast_enabled

AUTOCAST: Final[Entries] = (
    _switch(torch.set_autocast_enabled, torch.is_autocast_enabled, _ANY),
    _switch(torch.set_autocast_dtype, torch.get_autocast_dtype),
    _switch(torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled),
    _switch(torch.autocast_increment_nesting),
    _switch(torch.autocast_decrement_nesting, recorded=leave_autocast),
    (torch.clear_autocast_cache, _clear),
    # Autocast looks for a mode of torch's exporter.
    (
        torch.overrides._get_current_function_mode_stack,
        within_torch(Annotation(rest=Use.KEEP, result=Result.FRESH)),
    ),
    (
        torch._C._is_torch_function_mode_enabled,
        within_torch(Annotation(rest=Use.KEEP)),
    ),
)
