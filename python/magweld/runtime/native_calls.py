"""Owns the native function that calls are, made with what torch has for it."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import Any, Final

import torch
from llvmlite import ir
from torch import Tensor

from magweld.codegen.call_words import NewTensor, call_data
from magweld.codegen.python_functions import TAKES_ONE, NativeFunction
from magweld.codegen.whole_call import NAME, TorchCalls, define_call
from magweld.runtime.machine import HOST
from magweld.runtime.torch_library import (
    CPU_LIBRARY,
    PYTHON_LIBRARY,
    torch_address,
    torch_library,
)
from magweld.tensor_words import tensor_holder, without_modes

# What gives a new tensor its object in Python.
_WRAP: Final = "_Z16THPVariable_WrapON2at10TensorBaseE"


@functools.cache
def native_calls() -> NativeFunction | None:
    """Return what such functions are made of; None if torch does not let them be."""
    found = _torch_calls()
    if found is None:
        return None
    module = ir.Module(NAME)
    define_call(module, found)
    calls = NativeFunction(NAME, module, TAKES_ONE)
    return calls if without_modes(functools.partial(_makes_results, calls)) else None


def _torch_calls() -> TorchCalls | None:
    holder, device = tensor_holder(), _number("aoti_torch_device_type_cpu")
    if holder is None or device is None:
        return None
    names = ("get_data_ptr", "empty_strided", "delete_tensor_object")
    address, empty, release = (
        torch_address(CPU_LIBRARY, f"aoti_torch_{name}") for name in names
    )
    wrap = torch_address(PYTHON_LIBRARY, _WRAP)
    if not all((address, empty, release, wrap)):
        return None
    return TorchCalls(holder, address, empty, wrap, release, device)


@functools.cache
def number_of(dtype: torch.dtype) -> int | None:
    """Return the number that a type has in torch's interface for C."""
    return _number(f"aoti_torch_dtype_{str(dtype).removeprefix('torch.')}")


def _number(function: str) -> int | None:
    found: Any = getattr(torch_library(CPU_LIBRARY), function, None)
    return None if found is None else int(found())


def _makes_results(calls: NativeFunction) -> bool:
    """Whether results are those that torch makes in other ways, in all modes."""
    forms = [((2, 3), (3, 1), torch.float32), ((), (), torch.int64)]
    forms.append(((0, 4), (4, 1), torch.bool))
    x = torch.ones(2, dtype=torch.float32, device="cpu")
    table = (ctypes.c_int64 * (len(forms) + 2))()
    results = [
        NewTensor(place, number, shape, stride)
        for place, (shape, stride, dtype) in enumerate(forms, start=1)
        if (number := number_of(dtype)) is not None
    ]
    last = len(forms) + 1
    copies = [(0, last)]
    start = calls.on(call_data(ctypes.addressof(table), [0], results, copies))
    for mode in (torch.no_grad(), torch.enable_grad(), torch.inference_mode()):
        with mode:
            made, expected = start([x]), [HOST.empty(*form) for form in forms]
            addresses = [x.data_ptr(), *map(Tensor.data_ptr, made), x.data_ptr()]
            if list(map(_about, made)) != list(map(_about, expected)):
                return False
            if [*table] != addresses:
                return False
    return True


def _about(tensor: Tensor) -> Sequence[Any]:
    """Return what there is to ask of a new tensor."""
    return (
        *(type(tensor), tensor.shape, tensor.stride(), tensor.dtype, tensor.device),
        *(tensor.layout, tensor.requires_grad, tensor.is_leaf, tensor.is_inference()),
        *(tensor.storage_offset(), tensor.untyped_storage().nbytes()),
        *(tensor.untyped_storage().resizable(), sys.getrefcount(tensor)),
        tensor._version if not tensor.is_inference() else 0,
    )
