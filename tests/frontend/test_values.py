"""Values of torch's own types, and constants that code objects share."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def test_limits_of_types_are_values(checker: Any) -> None:
    def masked(x: Any) -> Any:
        limits = torch.finfo(x.dtype)
        return x * limits.eps + torch.iinfo(torch.int16).max * limits.tiny

    check = checker(masked)
    assert check(torch.randn(3)) == "record"
    assert check(torch.randn(3)) == "hit"
    assert check(torch.randn(3).double()) == "record"


def test_limits_are_results(checker: Any) -> None:
    check = checker(lambda x: (x + 1, torch.finfo(x.dtype)))
    assert check(torch.randn(3)) == "record"
    assert check(torch.randn(3)) == "hit"


def test_limits_in_state_are_guarded_by_value(twins: Any) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.limits = torch.finfo(torch.float32)

        def step(self, x: Any) -> Any:
            return x + self.limits.eps

    pair = twins(Model)
    x = torch.randn(3)
    assert pair.step(x) == "record"
    assert pair.step(x) == "hit"
    for model in (pair.eager, pair.mine):
        model.limits = torch.finfo(torch.float32)
    assert pair.step(x) == "hit"
    for model in (pair.eager, pair.mine):
        model.limits = torch.finfo(torch.float16)
    assert pair.step(x) == "record"


def test_attributes_of_devices_and_types(checker: Any) -> None:
    def scale(x: Any, like: Any) -> Any:
        factor = 2.0 if like.device.type == "cpu" else 3.0
        if like.dtype.is_floating_point and not like.dtype.is_complex:
            factor += like.dtype.itemsize + (1.5).real
        return x.to(like.dtype.to_complex()) * factor

    check = checker(scale)
    x = torch.randn(3)
    assert check(x, x) == "record"
    assert check(x, x) == "hit"
    assert check(x, x.double()) == "record"


class Padded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.padding = (1, 2)

    def step(self, x: Any) -> Any:
        sizes = (1, 2)  # the same object as above: the module has one constant
        return nn.functional.pad(x, self.padding) * sizes[1]


def test_constants_that_state_shares(twins: Any) -> None:
    pair = twins(Padded)
    assert pair.step(torch.randn(3)) == "record"
    assert pair.step(torch.randn(3)) == "hit"
    for model in (pair.eager, pair.mine):
        model.padding = (2, 2)
    assert pair.step(torch.randn(3)) == "record"


def test_constants_are_results(checker: Any) -> None:
    check = checker(lambda x: (x + 1, (1, (2.0, "a"))))
    assert check(torch.randn(3)) == "record"
    assert check(torch.randn(3)) == "hit"


class Keeper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.sizes = (3, 4)
        self.empty = ()

    def step(self, x: Any, *rest: Any) -> Any:
        unused = self.sizes
        return x + len(rest), (3, 4), self.empty, unused is None


def test_a_constant_is_not_what_state_holds_now(twins: Any) -> None:
    pair = twins(Keeper)
    assert pair.step(torch.randn(3)) == "record"
    assert pair.step(torch.randn(3)) == "hit"
    for model in (pair.eager, pair.mine):
        model.sizes = (5, 6)
    pair.step(torch.randn(3))
    for model in (pair.eager, pair.mine):
        model.empty = (1,)
    assert pair.step(torch.randn(3)) == "record"
