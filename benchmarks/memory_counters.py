"""Memory transactions of a GPU kernel, from the addresses of its threads.

Global memory moves in sectors, shared memory has 32 banks of four bytes: an instruction
of a subgroup costs one pass for each 128 bytes that its threads move, and more where
threads want different words of a bank.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

_BANKS = 32
_WORD = 4
_PASS_BYTES = _BANKS * _WORD


@dataclass(frozen=True)
class Access:
    """One memory instruction of a subgroup.

    Attributes:
        is_store: Whether it writes.
        is_shared: Whether it accesses the memory of a block.
        lanes: Numbers of the threads in their subgroup, of those that take part.
        first: Address of the first byte of each of them.
        width: Bytes of each of them.
    """

    is_store: bool
    is_shared: bool
    lanes: np.ndarray
    first: np.ndarray
    width: int


@dataclass
class Transactions:
    """How often something was done, and the least that could have done it."""

    done: int = 0
    least: int = 0

    @property
    def ratio(self) -> float:
        """Done by least, 1 where nothing was to be done."""
        return self.done / self.least if self.least else 1.0

    def __iadd__(self, other: Transactions) -> Self:
        """Add the counts of another one."""
        self.done += other.done
        self.least += other.least
        return self


@dataclass
class MemoryCounters:
    """What the memory instructions of a kernel did.

    Attributes:
        sector: Bytes of a sector of global memory.
        reads: Sectors that loads touched, against those that their bytes fill.
        writes: The same of stores.
        passes: Passes of shared memory, against those without conflicts.
        instructions: Instructions of subgroups on global memory.
        block_bytes: Bytes of the sectors that each block touched, once, over all.
        kernel_bytes: Bytes of the sectors that any block touched, once.
    """

    sector: int
    reads: Transactions = field(default_factory=Transactions)
    writes: Transactions = field(default_factory=Transactions)
    passes: Transactions = field(default_factory=Transactions)
    instructions: int = 0
    block_bytes: int = 0
    kernel_bytes: int = 0

    def __post_init__(self) -> None:
        self._block: dict[bool, list[np.ndarray]] = {False: [], True: []}
        self._kernel = {kind: np.empty(0, np.int64) for kind in self._block}

    def note(self, access: Access) -> None:
        """Count an instruction."""
        if access.is_shared:
            self.passes += _passes(access)
            return
        sectors, least = _sectors(access, self.sector)
        counted = self.writes if access.is_store else self.reads
        counted += Transactions(len(sectors), least)
        self.instructions += 1
        self._block[access.is_store].append(sectors)

    def end_block(self) -> None:
        """Count what the block whose accesses were noted has touched."""
        for kind, touched in self._block.items():
            if touched:
                sectors = np.unique(np.concatenate(touched))
                self.block_bytes += len(sectors) * self.sector
                known = self._kernel[kind]
                self._kernel[kind] = np.union1d(known, sectors)
                new = len(self._kernel[kind]) - len(known)
                self.kernel_bytes += new * self.sector
            touched.clear()

    def add(self, other: MemoryCounters) -> None:
        """Add the counts of another kernel."""
        self.reads += other.reads
        self.writes += other.writes
        self.passes += other.passes
        self.instructions += other.instructions
        self.block_bytes += other.block_bytes
        self.kernel_bytes += other.kernel_bytes


def _words(access: Access) -> tuple[np.ndarray, int]:
    """Return the addresses of the pieces of each lane, and their bytes."""
    piece = min(access.width, _WORD)
    return access.first[:, None] + np.arange(0, access.width, piece), piece


def _sectors(access: Access, sector: int) -> tuple[np.ndarray, int]:
    pieces, piece = _words(access)
    moved = len(np.unique(pieces)) * piece
    return np.unique(pieces // sector), -(-moved // sector)


def _passes(access: Access) -> Transactions:
    """Return the passes of an access, lanes in groups that move 128 bytes."""
    pieces, _ = _words(access)
    width = max(access.width, _WORD)
    groups = access.lanes * width // _PASS_BYTES
    keyed = (groups[:, None] << 40) | (pieces // _WORD)
    distinct = np.unique(keyed)
    group, bank = distinct >> 40, distinct % _BANKS
    conflicts = np.bincount(group * _BANKS + bank).reshape(-1)
    conflicts = np.pad(conflicts, (0, -len(conflicts) % _BANKS))
    longest = conflicts.reshape(-1, _BANKS).max(axis=1)
    return Transactions(int(longest.sum()), len(np.unique(groups)))
