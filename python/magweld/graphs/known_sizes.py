"""Owns what answers the next calls with sizes that were just answered, unasked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final
from weakref import ref

import torch

from magweld.tiers import TieredGraph

# Calls of one kind before it is asked again whether this is the best that there is, and
# kinds that are known.
UNASKED: Final = 7
_MOST: Final = 256


@dataclass
class _Known:
    """What answers calls of a kind.

    Attributes:
        form: The code of a program for all sizes; others may let it go.
        runtime: Numbers of the tensors that must have no gaps.
        taken: How many calls it has answered.
    """

    form: ref[TieredGraph]
    runtime: tuple[int, ...]
    taken: int = 0


class KnownSizes:
    """The forms of programs for all sizes that answer calls for good, by sizes."""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Known] = {}

    def take(
        self, key: Hashable, tensors: Sequence[torch.Tensor]
    ) -> TieredGraph | None:
        """Return what answers a call, and count it; None if that is to be asked.

        Args:
            key: Sizes and numbers of the call.
            tensors: Of the call.
        """
        known = self._known.get(key)
        if known is None or known.taken == UNASKED:
            return None
        form = known.form()
        if form is None or form.taken is None:
            return None
        for number in known.runtime:
            if not tensors[number].is_contiguous():
                return None
        known.taken += 1
        return form

    def drop(self, key: Hashable) -> int:
        """Forget a kind of calls; return how many were answered since it is known."""
        known = self._known.pop(key, None)
        return 0 if known is None else known.taken

    def add(self, key: Hashable, form: TieredGraph, runtime: tuple[int, ...]) -> None:
        """Have a form answer the next calls of a kind.

        Args:
            key: Sizes and numbers.
            form: It runs all further calls of the kind, if no own program is made.
            runtime: Numbers of the tensors that must have no gaps.
        """
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key] = _Known(ref(form), runtime)
