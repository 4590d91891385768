"""Annotations of torch functions that train: the program is split at calls of them.

They run the autograd graph, transform functions, or torch itself keeps compilers out of
them. Split further inside, they would leave many small parts.
"""

from __future__ import annotations

from types import CodeType
from typing import Any, Final

import torch
import torch.utils.checkpoint

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import Entries, NativeCall, Rule
from magweld.frontend.monitor.observer import Observer


def _refused(refusal: str, name: str = "") -> Rule:
    def rule(observer: Observer, call: NativeCall) -> None:
        raise StopRecordingError(refusal, name or call.name)

    return rule


def _inner(function: Any) -> CodeType:
    """Return the code of the functions that a decorator makes."""
    return next(
        item for item in function.__code__.co_consts if isinstance(item, CodeType)
    )


_AUTOGRAD: Final = (
    torch.Tensor.backward,
    torch.autograd.backward,
    torch.autograd.grad,
    torch.nn.utils.clip_grad_norm_,
    torch.nn.utils.clip_grad_value_,
)

# They return functions, which are called later, or transform at once.
_MAKERS: Final = ("functionalize", "grad", "grad_and_value", "jacfwd", "jacrev", "vmap")
_TRANSFORMS: Final = ("jvp", "linearize", "vjp")

TRAINING: Final[Entries] = (
    *((function, _refused("autograd-graph")) for function in _AUTOGRAD),
    # By code, as the decorators make a function for each use: those of the optimizers'
    # steps, and of all that `torch.compile` leaves out.
    (_inner(torch.optim.Optimizer.profile_hook_step), _refused("autograd-graph")),
    (torch.utils.checkpoint.checkpoint.__code__, _refused("native-call")),
    *(
        (
            _inner(getattr(torch.func, name)),
            _refused("native-call", f"torch.func.{name}"),
        )
        for name in _MAKERS
    ),
    *((getattr(torch.func, name), _refused("native-call")) for name in _TRANSFORMS),
)
