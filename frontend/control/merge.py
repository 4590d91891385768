"""Owns what two sides of a branch have in common at their end, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import fx

from magweld.frontend.monitor.stack import NULL
from magweld.frontend.operators.tensors import PLAIN_TENSORS
from magweld.frontend.state.values import is_scalar, same_scalar

_SEQUENCES: Final = (tuple, list)


class DifferenceError(Exception):
    """Two sides of a branch end with values that no operator can choose between."""


@dataclass
class Pairs:
    """Tensors that differ between two branches, and what is the same.

    Attributes:
        older: Returns those of some ids whose objects are from before the branch.
        nodes: Gives the nodes of a tensor after the taken branch and after the other.
        pairs: The tensor of the taken branch and that of the other, by the first's id.
        same: Objects that both branches have left where they were.
    """

    older: Callable[[Iterable[int]], frozenset[int]]
    nodes: Callable[[torch.Tensor], tuple[fx.Node, fx.Node]]
    pairs: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    same: list[Any] = field(default_factory=list)

    def add(self, mine: Any, other: Any) -> None:
        """Compare what one slot holds after either branch.

        Raises:
            DifferenceError: It is neither the same nor two tensors of one form.
        """
        if self._is_same(mine, other):
            self.same.append(mine)
        elif mine is NULL or other is NULL:
            raise DifferenceError("a variable that only one branch has set")
        elif isinstance(mine, torch.Tensor) and isinstance(other, torch.Tensor):
            self._add_tensors(mine, other)
        elif type(mine) in _SEQUENCES and self._alike(mine, other):
            for left, right in zip(mine, other, strict=True):
                self.add(left, right)
        elif type(mine) is dict and self._alike(mine, other):
            if list(mine) != list(other):
                raise DifferenceError("dicts with different keys")
            for key in mine:
                self.add(mine[key], other[key])
        else:
            raise DifferenceError(_name(mine, other))

    def _is_same(self, mine: Any, other: Any) -> bool:
        if mine is other:
            # One object may stand for two tensors, if a branch within has chosen it.
            first, second = (
                self.nodes(mine) if isinstance(mine, torch.Tensor) else (None, None)
            )
            return first is second
        return is_scalar(mine) and same_scalar(mine, other)

    def _alike(self, mine: Any, other: Any) -> bool:
        # Only containers that the branches themselves have made may be two objects.
        if type(mine) is not type(other) or len(mine) != len(other):
            return False
        return not self.older((id(mine), id(other)))

    def _add_tensors(self, mine: torch.Tensor, other: torch.Tensor) -> None:
        if form_of(mine) != form_of(other):
            raise DifferenceError("tensors of different type or shape")
        before = self.pairs.setdefault(id(mine), (mine, other))
        if before[1] is not other:
            raise DifferenceError("one tensor in the place of two")

    def passed_through(self) -> frozenset[int]:
        """Return the ids of tensors from before that stand for a result."""
        return self.older(self.pairs)


def _name(mine: Any, other: Any) -> str:
    kinds = sorted({type(mine).__qualname__, type(other).__qualname__})
    return f"values of {' and '.join(kinds)}"


def form_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return all that a program can learn of a tensor without its elements.

    Raises:
        DifferenceError: It is of a kind that has more to it.
    """
    if type(tensor) not in PLAIN_TENSORS or tensor.layout is not torch.strided:
        raise DifferenceError(f"a {type(tensor).__qualname__}")
    return (
        type(tensor),
        tensor.shape,
        tensor.stride(),
        tensor.storage_offset(),
        tensor.dtype,
        tensor.device,
        tensor.requires_grad,
        tensor.is_conj(),
        tensor.is_neg(),
        tensor.is_inference(),
    )
