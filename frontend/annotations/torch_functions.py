"""Annotations of torch functions that are no operators on tensors."""

from __future__ import annotations

import random
from types import MethodDescriptorType, WrapperDescriptorType
from typing import TYPE_CHECKING, Any, Final

import torch
import torch.overrides

from magweld.frontend.annotations.model import (
    Annotation,
    Entry,
    NativeCall,
    Result,
    Use,
)
from magweld.frontend.catalogue import StopRecordingError

if TYPE_CHECKING:
    from magweld.frontend.monitor.observer import Observer

# Answers follow from modes of torch, which every record guards.
_QUERY: Final = Annotation(rest=Use.KEEP)
_QUERIES: Final = (
    "_get_tracing_state",
    "_is_tracing",
    "_is_torch_function_enabled",
    "_is_torch_function_all_disabled",
    "_get_deterministic_algorithms",
    "_get_deterministic_algorithms_warn_only",
    "_get_cudnn_enabled",
    "_get_mkldnn_enabled",
    "_get_flash_sdp_enabled",
    "_get_math_sdp_enabled",
    "_get_mem_efficient_sdp_enabled",
    "_get_default_device",
    "_has_torch_function",
    "_has_torch_function_unary",
    "_has_torch_function_variadic",
    "_len_torch_function_stack",
    "_len_torch_dispatch_stack",
    "_log_api_usage_once",
    "_get_privateuse1_backend_name",
    "_is_fwd_grad_enabled",
    "_get_graph_exec_group",
    "_is_inference_mode_enabled",
    "get_default_dtype",
    "is_anomaly_enabled",
    "is_autocast_enabled",
    "is_autocast_cache_enabled",
    "is_autocast_available",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "get_autocast_dtype",
)


def _refuse_random(observer: Observer, call: NativeCall) -> None:
    raise StopRecordingError("random-state", call.name)


TORCH: Final[tuple[tuple[Any, Entry], ...]] = (
    *(
        (getattr(torch._C, name), _QUERY)
        for name in _QUERIES
        if hasattr(torch._C, name)
    ),
    *((getattr(torch, name), _QUERY) for name in _QUERIES if hasattr(torch, name)),
    # Hands the call to the recorder, which reads the arguments itself.
    (torch.overrides.handle_torch_function, _QUERY),
    (torch.overrides.has_torch_function, _QUERY),
    (torch.overrides.has_torch_function_unary, _QUERY),
    (torch.overrides.has_torch_function_variadic, _QUERY),
    (torch.device, Annotation()),
    (torch.Size, Annotation((Use.CONTENT,), result=Result.FRESH)),
    *(
        (method, Annotation((Use.CONTENT,), result=Result.FRESH))
        for method in vars(torch.Size).values()
        if type(method) in (WrapperDescriptorType, MethodDescriptorType)
    ),
    *(
        (method, _refuse_random)
        for cls in random.Random.__mro__[:-1]
        for name, method in vars(cls).items()
        if callable(method) and not name.startswith("__")
    ),
    *(
        (method, _refuse_random)
        for name, method in vars(torch._C.Generator).items()
        if callable(method) and not name.startswith("__")
    ),
)
