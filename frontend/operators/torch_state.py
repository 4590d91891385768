"""Owns modes of torch: those that decide about operators, those that observe a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import torch
import torch.overrides as functions
import torch.utils._python_dispatch as operators
from torch import get_autocast_dtype, is_anomaly_enabled, is_inference_mode_enabled
from torch._C import (
    _is_tracing,
    _len_torch_dispatch_stack,
    _len_torch_function_stack,
)
from torch.autograd import forward_ad

if TYPE_CHECKING:
    from magweld.frontend.operators.recorder import OperatorRecorder


def has_forward_gradients() -> bool:
    """Return whether tensors may have gradients that go forward with them."""
    return forward_ad._current_level >= 0


def hooks_on_saved_tensors() -> bool:
    """Whether Python of somebody else runs within operators, and must not run twice."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True) is not None


# Where torch has hooks of its own, which write nothing that a program knows.
_OWN_HOOKS: Final = frozenset({"torch.utils.checkpoint", "torch.autograd.graph"})


def program_hooks_on_saved_tensors() -> bool:
    """Whether such hooks are the program's, which may write what it writes as well."""
    hooks: Any = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return any(
        getattr(hook, "__module__", "") not in _OWN_HOOKS for hook in hooks or ()
    )


# The modes that a program can switch, and the others that decide about operators.
_SWITCHED: Final[tuple[Callable[[], Any], ...]] = (
    torch.is_grad_enabled,
    is_inference_mode_enabled,
    torch.get_default_dtype,
    partial(torch.is_autocast_enabled, "cpu"),
    partial(torch.is_autocast_enabled, "cuda"),
    partial(get_autocast_dtype, "cpu"),
    partial(get_autocast_dtype, "cuda"),
    torch.are_deterministic_algorithms_enabled,
    is_anomaly_enabled,
)
_AROUND: Final[tuple[Callable[[], Any], ...]] = (
    _len_torch_function_stack,
    _len_torch_dispatch_stack,
    torch._C._is_torch_function_enabled,
    _is_tracing,
    has_forward_gradients,
)


def operator_state() -> tuple[Any, ...]:
    """Return the modes of torch that a program can switch."""
    return tuple([mode() for mode in _SWITCHED])


def autocast_of(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what the modes say of autocast: whether and where to, for each device."""
    return state[3:7]


def without_autocast(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the modes without what they say of autocast."""
    return state[:3] + state[7:]


def torch_state() -> tuple[Any, ...]:
    """Return the modes of torch that decide about operators and their results."""
    return (*operator_state(), *[mode() for mode in _AROUND])


def beside_global_state() -> tuple[Any, ...]:
    """Return the modes of `torch_state` that a `GlobalStateGuard` does not know.

    Each hit asks for them, so they are written out: a loop takes twice as long.
    """
    return (
        is_inference_mode_enabled(),
        get_autocast_dtype("cpu"),
        get_autocast_dtype("cuda"),
        is_anomaly_enabled(),
        _len_torch_function_stack(),
        _len_torch_dispatch_stack(),
        _is_tracing(),
        forward_ad._current_level >= 0,
    )


class ObservingModes:
    """What observes torch below a run: the recorder's mode and that of its watch.

    The program may enter modes of its own above them, and need not leave these. So each
    of ours is taken out from wherever it lies in its stack.
    """

    def __init__(self, recorder: OperatorRecorder) -> None:
        self._recorder: Any = recorder
        self._watches = self._records = False

    def __enter__(self) -> Self:
        self._recorder.watch.__enter__()
        self._watches = True
        self._recorder.__enter__()
        self._records = True
        return self

    def __exit__(self, *error: object) -> None:
        self._recorder.is_transforming = False
        self.leave()

    def leave(self) -> bool:
        """Leave the modes; return False if one cannot be left now.

        While torch runs what a mode has got, the mode is in no stack: torch puts it
        back behind that. A transform of `torch.func` notes whether there are modes that
        see operators, runs code of Python, and puts that back in turn.
        """
        if self._watches and not self._recorder.is_transforming:
            self._watches = not _take(
                operators._get_current_dispatch_mode_stack,
                operators._pop_mode,
                operators._push_mode,
                self._recorder.watch,
            )
        if self._records:
            self._records = not _take(
                functions._get_current_function_mode_stack,
                functions._pop_mode,
                functions._push_mode,
                self._recorder,
            )
        return not (self._watches or self._records)


def _take(
    held: Callable[[], list[Any]],
    pop: Callable[[], Any],
    push: Callable[[Any], None],
    mode: Any,
) -> bool:
    """Take a mode out of a stack; return whether it was there."""
    if not any(one is mode for one in held()):
        return False
    above = []
    while (one := pop()) is not mode:
        above.append(one)
    for one in reversed(above):
        push(one)
    return True
