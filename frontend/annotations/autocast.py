"""Annotations of what switches autocast: steps of the graph, as the grad mode is.

The operators between them are recorded as the program wrote them; a hit enters the
region itself, so torch casts as it did, gradients included.
"""

from __future__ import annotations

from typing import Any, Final

import torch
import torch.overrides

from magweld.frontend.annotations.torch_functions import within_torch
from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    Annotation,
    Entries,
    NativeCall,
    Result,
    Rule,
    Use,
)
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.natives import record_operator
from magweld.frontend.state.values import is_scalar
from magweld.graphs.autocast import leave_autocast

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
