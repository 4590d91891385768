"""Owns all continuations that were made, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any

from magweld.frontend.segments.continuation import Continuations
from magweld.frontend.segments.shape import Continuation, Shape


class Sources:
    """Continuations by the code that they continue."""

    def __init__(self) -> None:
        self._sources: dict[int, Continuations] = {}
        self._made: dict[tuple[Any, ...], Continuation] = {}
        self._by_code: dict[int, Continuation] = {}

    def source(self, code: CodeType) -> Continuations:
        """Return the maker of continuations of a code object.

        Raises:
            ValueError: There are none for code of this kind.
        """
        known = self._sources.get(id(code))
        if known is None:
            # It holds the code, so the id cannot be used again.
            known = self._sources[id(code)] = Continuations(code)
        return known

    def make(
        self, code: CodeType, entry: Shape, stops: Sequence[int], calls: bool
    ) -> Continuation:
        """Return a continuation, see `Continuations.make`.

        Raises:
            ValueError: It cannot be made.
        """
        key = (id(code), entry, tuple(stops), calls)
        known = self._made.get(key)
        if known is None:
            known = self.source(code).make(entry, stops, calls)
            self._made[key] = known
            self._by_code[id(known.code)] = known
        return known

    def origin(self, code: CodeType) -> CodeType:
        """Return the original of the code of a continuation, other code as it is."""
        made = self._by_code.get(id(code))
        return code if made is None else made.origin

    def locate(self, code: CodeType, offset: int) -> int:
        """Return the offset in the original code."""
        made = self._by_code.get(id(code))
        if made is None:
            return offset
        if offset >= made.shift:
            return offset - made.shift
        # The prelude stands for the first instruction.
        return self.source(made.origin).last(made.entry.offset).offset

    def is_read(self, code: CodeType, offset: int, slot: int) -> bool:
        """Return whether the variable in a slot may be read from an offset on."""
        try:
            source = self.source(self.origin(code))
        except ValueError:
            return True
        return slot in source.liveness.at(self.locate(code, offset))

    def begins(self, code: CodeType) -> int:
        """Return where a frame has the values that it goes on with."""
        made = self._by_code.get(id(code))
        return 0 if made is None else made.taken

    def shift(self, code: CodeType) -> int:
        """Return where the original code begins in this code."""
        made = self._by_code.get(id(code))
        return 0 if made is None else made.shift
