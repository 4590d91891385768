"""Owns runs: values whose ids follow each other, so that one call sets addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, NamedTuple

from torch import Tensor

from magweld.runtime.machine import WriteAddresses


class Run(NamedTuple):
    """Values whose ids follow each other: their addresses are written at once.

    Attributes:
        ids: Their ids.
        begin: The byte of the table where their addresses begin.
        pack: Writes to a buffer, from a byte on, that many addresses.
        address: Where that byte is.
        native: Writes the addresses of tensors, if native code can.
    """

    ids: slice
    begin: int
    pack: Callable[..., None]
    address: int
    native: WriteAddresses | None

    @classmethod
    def of(
        cls, value_ids: Sequence[int], table: int, native: WriteAddresses | None
    ) -> Run | None:
        """Return values as a run; None if their ids do not follow each other."""
        first = min(value_ids, default=0)
        end = first + len(value_ids)
        if tuple(value_ids) != tuple(range(first, end)):
            return None
        begin, pack = 8 * first, Struct(f"{end - first}q").pack_into
        return cls(slice(first, end), begin, pack, table + begin, native)

    def write(
        self,
        table: Any,
        tensors: Sequence[Tensor],
        addresses: Sequence[int] | None = None,
    ) -> None:
        """Write their addresses, which tensors are asked for unless they are given."""
        if addresses is None and self.native is not None and type(tensors) is list:
            self.native(tensors, self.address)
            return
        if addresses is None:
            addresses = list(map(Tensor.data_ptr, tensors))
        self.pack(table, self.begin, *addresses)
