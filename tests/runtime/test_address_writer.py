"""Native code writes the addresses that tensors give in Python."""

import ctypes
import sys

import pytest
import torch
from torch import Tensor, nn

from magweld.runtime.loader import Kernels


def tensors() -> list[Tensor]:
    base = torch.arange(24.0).reshape(4, 6)
    halves = torch.zeros(9, dtype=torch.bfloat16)
    parameter = nn.Parameter(torch.ones(3))
    views = [
        base[1],
        base[:, 2:],
        base.t(),
        halves[5],
        base.detach(),
        base.expand(4, 6),
    ]
    return [base, *views, parameter, parameter.data, torch.empty(0), torch.ones(())]


def test_addresses_are_those_that_tensors_give() -> None:
    kernels = Kernels((), ())
    assert kernels.write_addresses is not None, "torch holds tensors somewhere else"
    for count in (0, 1, 500):
        found = (tensors() * 50)[:count]
        table = (ctypes.c_int64 * (count + 1))()
        table[count] = -7
        before = [sys.getrefcount(tensor) for tensor in found]
        kernels.write_addresses(found, ctypes.addressof(table))
        assert [*table] == [*(tensor.data_ptr() for tensor in found), -7]
        assert [sys.getrefcount(tensor) for tensor in found] == before


def test_a_tensor_without_memory_is_an_error() -> None:
    kernels = Kernels((), ())
    assert kernels.write_addresses is not None
    sparse = torch.eye(3).to_sparse()
    with pytest.raises(RuntimeError):
        sparse.data_ptr()
    table = (ctypes.c_int64 * 1)()
    with pytest.raises(RuntimeError, match="a tensor has no memory"):
        kernels.write_addresses([sparse], ctypes.addressof(table))
