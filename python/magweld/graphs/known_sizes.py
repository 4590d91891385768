"""Owns what answers the next calls with sizes that were just answered, unasked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from weakref import ref

import torch

from magweld.tiers import TieredGraph

# Calls of one kind before it is asked again whether this is the best that there is, and
# kinds that are known.
UNASKED: Final = 7
_MOST: Final = 256
# Tensors that hide nothing from whoever asks where they are.
_PLAIN: Final = frozenset({torch.Tensor, torch.nn.Parameter})

# Takes the inputs of a call.
Answer = Callable[[list[Any]], Any]


@dataclass
class _Known:
    """What answers calls of a kind.

    Attributes:
        form: The code of a program for all sizes; others may let it go.
        dense: Numbers of the tensors that must have no gaps.
        is_plain: Whether all tensors are of torch's own classes.
        taken: How many calls it has answered.
    """

    form: ref[TieredGraph]
    dense: tuple[int, ...]
    is_plain: bool
    taken: int = 0


class KnownSizes:
    """The forms of programs for all sizes that answer calls, by sizes.

    Whoever asks makes sure that tensors of one kind of calls agree in class, dtype and
    device, and in their strides unless they must have no gaps.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, _Known] = {}

    def take(self, key: Hashable, tensors: Sequence[torch.Tensor]) -> Answer | None:
        """Return what answers a call, and count it; None if that is to be asked.

        Args:
            key: Sizes and numbers of the call.
            tensors: Of the call.
        """
        known = self._known.get(key)
        if known is None or known.taken == UNASKED:
            return None
        form = known.form()
        if form is None:
            return None
        for number in known.dense:
            if not tensors[number].is_contiguous():
                return None
        code = form.take_call()
        if code is None:
            return None
        known.taken += 1
        alike: Answer | None = getattr(code, "call_alike", None)
        if alike is not None and known.is_plain:
            return alike
        return lambda inputs: code(*inputs)

    def drop(self, key: Hashable) -> int:
        """Forget a kind of calls; return how many were answered since it is known."""
        known = self._known.pop(key, None)
        return 0 if known is None else known.taken

    def add(
        self,
        key: Hashable,
        form: TieredGraph,
        tensors: Sequence[torch.Tensor],
        dense: Iterable[int],
    ) -> None:
        """Have a form answer the next calls of a kind.

        Args:
            key: Sizes and numbers.
            form: It runs further calls of the kind, if no own program is made.
            tensors: Of a call of the kind.
            dense: Numbers of the tensors that must have no gaps.
        """
        if len(self._known) >= _MOST:
            self._known.clear()
        is_plain = _PLAIN.issuperset(map(type, tensors))
        self._known[key] = _Known(ref(form), tuple(dense), is_plain)
