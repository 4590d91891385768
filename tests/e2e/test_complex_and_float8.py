"""Complex, float8 and unsigned tensors among compiled operators."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from magweld import api
from magweld.frontend import trace

COMPLEX = torch.complex64


def wave() -> tuple[Tensor, ...]:
    return (torch.randn(2, 800), torch.hann_window(64))


def spectrum(wave: Tensor, window: Tensor) -> Tensor:
    return torch.stft(wave, 64, 16, window=window, return_complex=True)


def magnitudes(wave: Tensor, window: Tensor) -> Tensor:
    return nn.functional.layer_norm(spectrum(wave, window).abs().log1p() * 2, (51,))


def rotary(x: Tensor, turns: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2).softmax(-1) * 2 + 1


def fourier_layer(x: Tensor, weight: Tensor) -> Tensor:
    modes = torch.fft.rfft(x.relu() + 1)
    out = torch.zeros_like(modes)
    out[..., :5] = torch.einsum("bci,coi->boi", modes[..., :5], weight)
    return torch.tanh(torch.fft.irfft(out, n=x.shape[-1])) + x * 2


def float8(x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    narrow = (x / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
    return narrow.to(torch.float32) * scale + torch.tanh(x).exp(), narrow


def conjugates(x: Tensor) -> Tensor:
    return (x.conj() * x).real.sqrt() + x.abs().softmax(-1)


def negatives(x: Tensor) -> Tensor:
    return x.conj().imag * 2 + x.abs().softmax(-1)


def written(x: Tensor, y: Tensor) -> Tensor:
    y.mul_(2j)
    y += x.exp()
    return y.abs().tanh() * 2 + 1


def unsigned(x: Tensor) -> tuple[Tensor, Tensor]:
    return (x.to(torch.int32) * 2).to(torch.uint16), x.exp().tanh() + 1


def returned(x: Tensor) -> tuple[Tensor, Tensor]:
    made = torch.view_as_complex(x.softmax(-1) * 2 + 1)
    return made, made.T


CASES: dict[Callable[..., Any], Callable[[], tuple[Tensor, ...]]] = {
    magnitudes: wave,
    rotary: lambda: (
        torch.randn(2, 8, 4, 16),
        torch.polar(torch.ones(8, 1, 8), torch.randn(8, 1, 8)),
    ),
    fourier_layer: lambda: (torch.randn(2, 3, 32), torch.randn(3, 3, 5, dtype=COMPLEX)),
    float8: lambda: (torch.randn(4, 8) * 100, torch.rand(1) + 0.5),
    conjugates: lambda: (torch.randn(4, 8, dtype=COMPLEX),),
    negatives: lambda: (torch.randn(4, 8, dtype=COMPLEX),),
    written: lambda: (torch.randn(4, 8), torch.randn(4, 8, dtype=COMPLEX)),
    unsigned: lambda: (torch.rand(4, 8) * 100,),
    returned: lambda: (torch.randn(4, 8, 2),),
}


def facts(tree: Any, inputs: tuple[Tensor, ...]) -> list[Any]:
    owners = [t.untyped_storage()._cdata for t in inputs]
    found: list[Any] = []
    for t in pytree.tree_leaves(tree):
        shared = [t.untyped_storage()._cdata == owner for owner in owners]
        found.append((t.dtype, t.shape, t.stride(), t.is_conj(), t.is_neg(), shared))
    return found


def same_as_eager(fast: Any, program: Callable[..., Any], make: Any) -> None:
    for _ in range(4):
        mine = make()
        theirs = copy.deepcopy(mine)
        with torch.no_grad():
            found, expected = fast(*mine), program(*theirs)
        torch.testing.assert_close((found, mine), (expected, theirs))
        assert facts(found, mine) == facts(expected, theirs)


@pytest.mark.parametrize("program", CASES, ids=lambda case: case.__name__)
def test_torch_runs_what_only_torch_computes(program: Any) -> None:
    torch.manual_seed(0)
    fast = trace(program)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        same_as_eager(fast, program, CASES[program])
    (record,) = fast.records
    assert isinstance(record.compiled, api.CompiledGraph)
    report = record.compiled.report()
    assert report["externals"]
    assert report["groups"]
    assert "torch.aten" in record.mlir("torch")


@pytest.mark.parametrize("lazy", [torch.conj, lambda x: x.conj().imag])
def test_lazy_results_stay_lazy(lazy: Callable[[Tensor], Tensor]) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        return lazy(x), x.abs().exp() * 2

    fast = trace(program)
    with pytest.warns(UserWarning, match="output-lazy-bits"):
        same_as_eager(fast, program, lambda: (torch.randn(4, 8, dtype=COMPLEX),))
    assert fast.stats()["hits"] == 3
