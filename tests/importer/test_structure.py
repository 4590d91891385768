"""Views, joins, constants and narrow types against eager torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from samples import COLUMN, IMAGE, ROW, X, Y, floats, whole

Function = Callable[..., Any]
Case = tuple[Function, tuple[torch.Tensor, ...]]


def rows_written(x: torch.Tensor) -> torch.Tensor:
    copy = x + 1
    copy[1:3] = 0.5
    copy[:, ::2] += 1
    return copy


STRUCTURE: dict[str, Case] = {
    "view": (lambda x: x.view(3, 8) * 1, (X,)),
    "view-infer": (lambda x: x.view(2, -1, 3) + 1, (X,)),
    "reshape-of-permuted": (lambda x: x.t().reshape(2, 12) + 1, (X,)),
    "flatten": (lambda x: x.flatten(1) + 1, (IMAGE,)),
    "unflatten": (lambda x: x.unflatten(1, (2, 3)) + 1, (X,)),
    "permute": (lambda x: x.permute(0, 2, 3, 1) + 1, (IMAGE,)),
    "permute-contiguous": (lambda x: x.permute(2, 0, 3, 1).contiguous(), (IMAGE,)),
    "transpose": (lambda x: x.transpose(-1, 1) * 2, (IMAGE,)),
    "expand": (lambda x: x.expand(3, 4, 5) + 1, (COLUMN,)),
    "expand-as-add": (lambda x, y: x.expand_as(y) + y, (ROW, X)),
    "squeeze": (lambda x: (x.squeeze() + 1, x.squeeze(1) + 1), (COLUMN,)),
    "unsqueeze": (lambda x: x.unsqueeze(0).unsqueeze(-1) * 2, (X,)),
    "select": (lambda x: x[1] + x[-1], (X,)),
    "slice": (lambda x: x[1:3, ::2] + 1, (X,)),
    "slice-negative": (lambda x: x[-3:, :-1] + 1, (X,)),
    "index-new-axis": (lambda x: x[:, None, 1:] * 2, (X,)),
    "cat": (lambda x, y: torch.cat([x, y, x], 1), (X, Y)),
    "cat-rows-mixed": (lambda x, y: torch.cat([x, y.double()]), (X, Y)),
    "stack": (lambda x, y: torch.stack([x, y], -1), (X, Y)),
    "chunk": (lambda x: [p * 2 for p in x.chunk(3, 1)], (X,)),
    "split": (lambda x: [p * 2 for p in x.split([1, 5], 1)], (X,)),
    "unbind": (lambda x: [p * 2 for p in x.unbind(0)], (X,)),
    "repeat": (lambda x: x.repeat(2, 1, 3), (X,)),
    "repeat-interleave": (lambda x: x.repeat_interleave(2, 1), (X,)),
    "flip": (lambda x: x.flip(1), (X,)),
    "roll": (lambda x: x.roll(2, 1) + 1, (X,)),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 3), value=1.5), (X,)),
    "pad-negative": (lambda x: F.pad(x, (-1, 2)), (X,)),
    "pad-reflect": (lambda x: F.pad(x, (1, 2, 1, 1), mode="reflect"), (IMAGE,)),
    "tril": (lambda x: x.tril(), (X,)),
    "triu": (lambda x: x.triu(1), (X,)),
    "pixel-shuffle": (lambda x: F.pixel_shuffle(x, 2), (IMAGE,)),
    "choice-of-one": (lambda x, y: torch.where(x > y, y[0], y[0]), (X, Y)),
    "narrow": (lambda x: x.narrow(1, 2, 3) * 2, (X,)),
    "movedim": (lambda x: x.movedim(1, -1) * 2, (IMAGE,)),
    "diagonal": (lambda x: x.diagonal() * 2, (X,)),
    "unfold": (lambda x: x.unfold(1, 3, 2) * 2, (X,)),
    "arange": (lambda x: x + torch.arange(6), (X,)),
    "arange-steps": (lambda x: x + torch.arange(1, 13, 2), (X,)),
    "arange-start": (lambda x: x + torch.arange(2, 8), (X,)),
    "arange-whole-floats": (lambda x: x + torch.arange(6.0), (X,)),
    "arange-down": (lambda x: x + torch.arange(9, -3, -2.0), (X,)),
    "arange-part-of-a-step": (lambda x: x + torch.arange(0, 10.5, 2), (X,)),
    "arange-single-of-double": (
        lambda x: x.double() + torch.arange(6, dtype=torch.float64),
        (X,),
    ),
    "arange-floats": (lambda x: x + torch.arange(0, 3, 0.5), (X,)),
    "linspace": (lambda x: x + torch.linspace(0, 1, 6), (X,)),
    "row-written": (lambda x: (x + 1)[1:3].fill_(2) + x[1:3], (X,)),
    "rows-written": (rows_written, (X,)),
    "factories": (
        lambda x: x + torch.ones(6) + torch.zeros(4, 1) + torch.full((6,), 2.5),
        (X,),
    ),
    "factories-like": (
        lambda x: x * torch.ones_like(x) + torch.full_like(x, 3) + x.new_zeros(6),
        (X,),
    ),
    "constant": (lambda x: x * torch.tensor([1.0, 2, 3, 4, 5, 6]), (X,)),
    "constant-bools": (lambda x: x * torch.tensor([True, False] * 3), (X,)),
    "constant-scalar": (lambda x: x * torch.tensor(2.5) + torch.tensor(3), (X,)),
    "constant-long": (lambda x: torch.tensor([[3, 1], [4, 1]]) * x, (whole(2, 2),)),
    "eye": (lambda x: x @ torch.eye(6), (X,)),
    "meshgrid": (
        lambda x, y: torch.meshgrid(x[:, 0] + 1, y, indexing="ij"),
        (X, ROW),
    ),
    "zero-size": (lambda x: (x[:, :0] + 1, x[:0].sum(0)), (X,)),
    "scalar": (lambda x: x * 2 + 1, (torch.tensor(3.0),)),
}


@pytest.mark.parametrize("name", STRUCTURE)
def test_structure(check: Any, name: str) -> None:
    function, inputs = STRUCTURE[name]
    check(function, *inputs)


NARROW = [torch.bfloat16, torch.float16, torch.int8, torch.uint8, torch.int16]


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_narrow_types_keep_torchs_precision(check: Any, dtype: torch.dtype) -> None:
    x = (floats(4, 6) * 50).abs().to(dtype)

    def function(x: torch.Tensor) -> Any:
        return x + x, x.float() * 2, x.sum(1), x == 7, x.t(), torch.cat([x, x])

    check(function, x)
