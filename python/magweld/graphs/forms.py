"""Owns which compiled forms of one graph are kept: so many bytes, and none in vain."""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import torch

# Uses of one set of sizes and numbers before the graph is compiled for it.
COMPILE_AFTER: Final = 3
# The same where a program for all sizes answers meanwhile.
COMPILE_BESIDE: Final = 64
# The same where it is not known yet whether a form is worth anything.
NEVER: Final = 1 << 62
# Keys from which on it is known that hardly any comes back, and uses of each then.
_MANY: Final = 32
_HARDLY_ANY: Final = 1.25
# What a form takes that does not tell.
_UNKNOWN_BYTES: Final = 1 << 20
# Sets of sizes and numbers whose uses are counted; a count is some hundred bytes.
_COUNTED: Final = 4096

Form = Callable[..., Any]


def key_of(tensors: Iterable[torch.Tensor], numbers: Collection[Any]) -> Hashable:
    """Return the sizes and numbers of a call as a key; numbers are told by type, too.

    Args:
        tensors: Of the call.
        numbers: Beside them.
    """
    shapes = [t.shape for t in tensors]
    return (*shapes, *map(_exact, numbers)) if numbers else tuple(shapes)


def _exact(number: Any) -> tuple[type, Any]:
    """Return what is equal for numbers of one type with the same bits."""
    kind = type(number)
    return kind, struct.pack("d", number) if kind is float else number


@dataclass
class _Uses:
    """Uses of a key.

    Attributes:
        count: Since its form was dropped, or all if it had none.
        dropped: How often its form was dropped.
        is_asked: Whether a form was asked for since then.
    """

    count: int = 0
    dropped: int = 0
    is_asked: bool = False


class Forms:
    """The compiled forms of one graph by sizes and numbers; not for several threads.

    A form is made at the third use, or later where something else is almost as fast.
    Above the limit the least recently used one goes;
    each time it went, it has to be used twice as often before it is made again. So a
    rotation that does not fit is answered by torch and not compiled for ever.

    Args:
        limit: Bytes that all forms may take. One is kept however large it is.

    Attributes:
        made: How many forms were made.
        dropped: How many of them have gone.
        uses: How often keys without a form were used.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._forms: OrderedDict[Hashable, tuple[Form, int]] = OrderedDict()
        self._uses: OrderedDict[Hashable, _Uses] = OrderedDict()
        self._bytes = 0
        self.made = 0
        self.dropped = 0
        self.uses = 0
        # Those of a key that was not remembered.
        self._first = 0

    def __len__(self) -> int:
        return len(self._forms)

    @property
    def kinds(self) -> int:
        """How many keys were used without a form, as far as that is remembered."""
        return len(self._uses)

    @property
    def are_new(self) -> bool:
        """Whether hardly any key comes back: there were many, and few uses of each."""
        return self.kinds >= _MANY and self.uses <= _HARDLY_ANY * self._first

    def values(self) -> list[Form]:
        """Return the forms, the most recently used last."""
        return [form for form, _ in self._forms.values()]

    def find(self, key: Hashable) -> Form | None:
        """Return the form for a key, None if there is none now."""
        found = self._forms.get(key)
        if found is None:
            return None
        self._forms.move_to_end(key)
        return found[0]

    def is_wanted(
        self, key: Hashable, after: int = COMPILE_AFTER, most: int | None = None
    ) -> bool:
        """Count a use of a key without a form; return whether one should be made.

        Args:
            key: Sizes and numbers.
            after: How many uses a form is worth that was never dropped.
            most: Of how many uses of all keys one must be of this key; None does not
                matter. At about so many keys at most a form is made then.
        """
        uses = self._uses_of(key)
        uses.count += 1
        self.uses += 1
        if uses.is_asked:
            return True
        is_often = most is None or uses.count * most >= self.uses
        return is_often and uses.count >= after << uses.dropped

    def note_uses(self, key: Hashable, count: int) -> None:
        """Count uses of a key without a form that were answered unasked.

        Args:
            key: Sizes and numbers.
            count: How many there were.
        """
        self._uses_of(key).count += count
        self.uses += count

    def want(self, key: Hashable) -> None:
        """Have a form made at the next use of a key, however seldom it is used."""
        self._uses_of(key).is_asked = True

    def _uses_of(self, key: Hashable) -> _Uses:
        uses = self._uses.get(key)
        if uses is None:
            uses = self._uses[key] = _Uses()
            self._first += 1
            if len(self._uses) > _COUNTED:
                self._uses.popitem(last=False)
        self._uses.move_to_end(key)
        return uses

    def add(self, key: Hashable, form: Form) -> None:
        """Keep a form; others may go."""
        self.made += 1
        self._keep(key, form)

    def resize(self, key: Hashable) -> None:
        """Take note that a form has another size now; others may go."""
        if key in self._forms:
            self._keep(key, self._forms[key][0])

    def _keep(self, key: Hashable, form: Form) -> None:
        size = getattr(form, "held_bytes", _UNKNOWN_BYTES)
        self._bytes += size - self._forms.pop(key, (form, 0))[1]
        self._forms[key] = (form, size)
        while self._bytes > self._limit and len(self._forms) > 1:
            gone, (_, taken) = self._forms.popitem(last=False)
            self._bytes -= taken
            self.dropped += 1
            uses = self._uses.setdefault(gone, _Uses())
            uses.count, uses.dropped = 0, uses.dropped + 1
            uses.is_asked = False
