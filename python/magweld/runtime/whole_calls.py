"""Owns calls of programs of kernels alone: each is one function of native code.

It writes the addresses of arguments, has torch make the results, and runs the kernels.
A call of Python for each result takes longer than torch takes to make it.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from llvmlite import ir
from torch import Tensor

from magweld.artifact import KernelStep, Place
from magweld.codegen.python_functions import TAKES_ONE, NativeFunction
from magweld.codegen.whole_call import (
    NAME,
    NewTensor,
    TorchCalls,
    call_data,
    define_call,
)
from magweld.runtime.layout import Layout, Signature
from magweld.runtime.machine import HOST
from magweld.runtime.torch_library import (
    CPU_LIBRARY,
    PYTHON_LIBRARY,
    torch_address,
    torch_library,
)
from magweld.short_repr import short_repr
from magweld.tensor_words import tensor_holder, without_modes

# What gives a new tensor its object in Python.
_WRAP: Final = "_Z16THPVariable_WrapON2at10TensorBaseE"


@dataclass(frozen=True)
class WholeCall:
    """A call on one table of addresses.

    Attributes:
        run: Takes a list of arguments and gives one of results; None if torch refuses
            to give an address or to make a result: then no kernel has run.
        launches: The addresses of the kernels.
    """

    __repr__ = short_repr

    run: Callable[[list[Tensor]], list[Tensor] | None]
    launches: ctypes.Array[ctypes.c_int64]


# Takes the address of a table.
MakeWhole = Callable[[int], WholeCall]


def symbols_of_whole(layout: Layout) -> list[str] | None:
    """Return the kernels of a program if its calls can be such functions, or None.

    It then has kernels alone, and returns each tensor that it makes once.
    """
    program = layout.program
    steps = [step for step in program.steps if isinstance(step, KernelStep)]
    outputs = sorted(layout.values_in(Place.OUTPUT))
    if len(steps) < len(program.steps) or sorted(program.results) != outputs:
        return None
    signatures = [layout.signatures[i] for i in outputs]
    if any(_number_of(signature.dtype) is None for signature in signatures):
        return None
    return None if native_calls() is None else [step.symbol for step in steps]


def bind_whole(
    layout: Layout, launches: ctypes.Array[ctypes.c_int64], table: int
) -> WholeCall:
    """Return a call on a table.

    Args:
        layout: A program that `symbols_of_whole` knows the kernels of.
        launches: The addresses of these kernels.
        table: The address of the table.
    """
    calls = native_calls()
    assert calls is not None, "asked before"
    results = layout.program.results
    data = call_data(
        table,
        layout.inputs,
        [_new_tensor(value_id, layout.signatures[value_id]) for value_id in results],
        [
            (root, view)
            for root in (*layout.inputs, *results)
            for view in layout.aliases[root]
        ],
        (ctypes.addressof(launches), len(launches)),
    )
    return WholeCall(calls.on(data), launches)


def _new_tensor(place: int, signature: Signature) -> NewTensor:
    number = _number_of(signature.dtype)
    assert number is not None, "asked before"
    return NewTensor(place, number, tuple(signature.shape), signature.stride)


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
def _number_of(dtype: torch.dtype) -> int | None:
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
        if (number := _number_of(dtype)) is not None
    ]
    last = len(forms) + 1
    copies = [(0, last)]
    start = calls.on(call_data(ctypes.addressof(table), [0], results, copies, (0, 0)))
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
