"""Reductions against eager torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from samples import COLUMN, IMAGE, SPECIAL, X, bools, positive, whole

Function = Callable[..., Any]
Case = tuple[Function, tuple[torch.Tensor, ...]]

REDUCTIONS: dict[str, Case] = {
    "sum": (lambda x: x.sum(), (X,)),
    "sum-dim": (lambda x: (x.sum(0), x.sum(-1), x.sum((0, 1))), (X,)),
    "sum-kept": (lambda x: x / x.sum(-1, keepdim=True), (positive(4, 6),)),
    "sum-middle": (lambda x: x.sum((1, 3)), (IMAGE,)),
    "sum-bools": (lambda x: (x.sum(), x.sum(1)), (bools(4, 6),)),
    "sum-integers": (lambda x: x.sum(1, keepdim=True), (whole(4, 6),)),
    "sum-narrow-integers": (lambda x: x.sum(1), (whole(4, 6, dtype=torch.int32),)),
    "sum-as-double": (lambda x: x.sum(1, dtype=torch.float64), (X,)),
    "mean": (lambda x: (x.mean(), x.mean(1), x.mean((0, 1), keepdim=True)), (X,)),
    "mean-image": (lambda x: x.mean((2, 3)), (IMAGE,)),
    "amax": (lambda x: (x.amax(1), x.amax((0, 1)), x.amax(0, True)), (X,)),
    "amin": (lambda x: (x.amin(1), x.amin(0, True)), (X,)),
    "amax-nan": (lambda x: (x.amax(1), x.amin(1)), (SPECIAL,)),
    "max-values": (lambda x: x.max(1).values + 1, (X,)),
    "max-pair": (lambda x: tuple(x.max(1)), (SPECIAL,)),
    "max-all": (lambda x: (x.max(), x.min()), (X,)),
    "max-integers": (lambda x: (x.amax(1), x.max()), (whole(4, 6),)),
    "argmax": (lambda x: (x.argmax(1), x.argmin()), (SPECIAL,)),
    "var": (lambda x: (x.var(1), x.std(0, keepdim=True), x.var()), (X,)),
    "var-mean": (lambda x: torch.var_mean(x, 1, correction=0), (X,)),
    "any-all": (lambda x: (x.any(), x.all(), x.any(1), x.all(0)), (bools(4, 6),)),
    "any-floats": (lambda x: (x.any(1), x.all()), (X,)),
    "prod": (lambda x: (x.prod(1), x.prod(0, keepdim=True), x.prod()), (X,)),
    "prod-bools": (lambda x: (x.prod(1), x.prod()), (bools(4, 6),)),
    "prod-integers": (lambda x: x.prod(1), (whole(4, 6) * 2**40 + 1,)),
    "prod-special": (lambda x: (x.prod(1), x.prod(0)), (SPECIAL,)),
    "prod-as-double": (lambda x: x.prod(1, dtype=torch.float64), (X,)),
    "norm": (lambda x: (x.norm(), x.norm(dim=1), F.normalize(x)), (X,)),
    "norm-1": (lambda x: torch.linalg.vector_norm(x, 1, 1), (X,)),
    "logsumexp": (lambda x: x.logsumexp(1), (X,)),
    "softmax": (lambda x: (x.softmax(-1), x.softmax(0)), (X,)),
    "softmax-hidden": (lambda x: x.softmax(-1), (torch.full((2, 3), -float("inf")),)),
    "softmax-double": (lambda x: x.softmax(1), (X.double(),)),
    "log-softmax": (lambda x: F.log_softmax(x, -1), (X * 20,)),
    "cross-entropy": (F.cross_entropy, (X, torch.tensor([0, 5, 2, 2]))),
    "cumsum": (lambda x: x.cumsum(1) * 2, (X,)),
    "sort": (lambda x: x.sort(1), (X,)),
    "topk": (lambda x: x.topk(2)[0] + 1, (X,)),
    "one-axis-of-one": (lambda x: (x.sum(1), x.amax(1, True), x.mean(1)), (COLUMN,)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(check: Any, name: str) -> None:
    function, inputs = REDUCTIONS[name]
    check(function, *inputs)
