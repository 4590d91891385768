"""Annotations of torch classes and objects whose calls are operators of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from magweld.frontend.monitor.annotation import Entry, NativeCall, Rule
from magweld.frontend.rules.annotated import record_operator
from magweld.frontend.state.mro import class_dict

if TYPE_CHECKING:
    from magweld.frontend.monitor.observer import Observer


def _operator(func: Any) -> Rule:
    """Return a rule for what makes tensors unseen by the function mode."""

    def rule(observer: Observer, call: NativeCall) -> None:
        record_operator(observer, call.name, func, call.args, call.kwargs)

    return rule


def _script_function(observer: Observer, call: NativeCall) -> None:
    function, *args = call.args
    record_operator(observer, call.name, function, tuple(args), call.kwargs)


_TENSOR_CLASSES: Final = tuple(
    cls
    for name in dir(torch)
    if name.endswith("Tensor") and isinstance(cls := getattr(torch, name), type)
)

TORCH_CLASSES: Final[tuple[tuple[Any, Entry], ...]] = (
    (torch.from_numpy, _operator(torch.from_numpy)),
    *((cls, _operator(cls)) for cls in _TENSOR_CLASSES),
    (torch.autograd.Variable, _operator(torch.autograd.Variable)),
    (torch.nn.Parameter, _operator(torch.nn.Parameter)),
    (class_dict(torch.jit.ScriptFunction)["__call__"], _script_function),
)
