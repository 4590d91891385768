"""Owns the state of torch in which the steps of a program run."""

from __future__ import annotations

from types import TracebackType

import torch


class TorchIsolation:
    """Shields a program run from the caller's modes and restores them after.

    Inside, `TorchFunctionMode`s (among them `torch.device` contexts), subclasses'
    `__torch_function__` and `TorchDispatchMode`s are not consulted, autocast on the
    program's kind of device is off and nothing is recorded for autograd. Inference
    mode is left alone, since it decides which kind of tensor the caller gets back.

    One instance serves one `with`; all the state is of the calling thread.

    Args:
        device_type: Kind of device, as torch spells it.
    """

    __slots__ = ("_autocast", "_device_type", "_dispatch", "_function", "_grad")

    def __init__(self, device_type: str = "cpu") -> None:
        self._device_type = device_type

    def __enter__(self) -> None:
        self._function = torch._C.DisableTorchFunction()
        self._dispatch = torch._C._DisableTorchDispatch()
        self._function.__enter__()
        self._dispatch.__enter__()  # type: ignore[no-untyped-call]
        self._grad = torch.is_grad_enabled()
        if self._grad:
            torch._C._set_grad_enabled(False)
        self._autocast = torch.is_autocast_enabled(self._device_type)
        if self._autocast:
            torch.set_autocast_enabled(self._device_type, False)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._autocast:
            torch.set_autocast_enabled(self._device_type, True)
        if self._grad:
            torch._C._set_grad_enabled(True)
        self._dispatch.__exit__(None, None, None)
        self._function.__exit__(None, None, None)


def modes_are_active() -> bool:
    """Whether a mode of the caller's would see what is done with tensors."""
    functions: int = torch._C._len_torch_function_stack()
    return functions > 0 or torch._C._len_torch_dispatch_stack() > 0
