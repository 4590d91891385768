"""Owns the description of a device: memory levels and processing units as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# What limits a plan where no level does; beside the names of levels.
ARITHMETIC = "arithmetic"
# What starting all units on a kernel takes where nothing states it: microseconds on
# CPUs and GPUs alike.
LAUNCH_SECONDS = 3e-6
# Passes over shared memory, of devices that state none: those measured on an H100.
WINDOW_PASSES, HALF_WINDOW_PASSES = 1.5, 4.0
SHARED_SUM_PASSES = 12.0
# Slots of arithmetic that a multiply-add of a product by threads takes, likewise.
PRODUCT_SLOTS = 1.3
# What libraries compute: products of matrices, and windows with sums over channels.
PRODUCT, CONVOLUTION = LIBRARY_OPERATIONS = ("product", "convolution")


# What threads take that share tiles.
_OF_THREADS = (
    *("window_passes", "half_window_passes", "shared_sum_passes"),
    "product_slots",
)


class LevelKind(StrEnum):
    """Who decides what a memory level holds."""

    EXPLICIT = "explicit"  # the program places data, as in shared memory
    CACHE = "cache"  # the hardware keeps what was used recently


@dataclass(frozen=True)
class Level:
    """One memory level of a device.

    Attributes:
        name: E.g. "dram", "l2", "shared", "register"; unique in a device.
        capacity: Bytes of one unit that a program may use; 0 if unbounded.
        bandwidth: GB/s (1e9 bytes per second) of all units together.
        transaction: Bytes that the smallest transfer from this level moves.
        units: How many separate memories of this level the device has.
        kind: Explicitly placed, or a cache.
        write_bandwidth: GB/s of writes to this level, None if as that of reads.
        write_transaction: Bytes of the smallest write, None if as that of reads.

    Raises:
        ValueError: A number that no memory can have, or an empty name.
    """

    name: str
    capacity: int
    bandwidth: float
    transaction: int
    units: int
    kind: LevelKind
    write_bandwidth: float | None = None
    write_transaction: int | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("expected a level to have a name")
        _require(f"capacity of level '{self.name}'", self.capacity, least=0)
        _require(f"transaction of level '{self.name}'", self.transaction, least=1)
        _require(f"units of level '{self.name}'", self.units, least=1)
        _require_positive(f"bandwidth of level '{self.name}'", self.bandwidth)
        _require(f"write_transaction of level '{self.name}'", self.to_write, least=1)
        _require_positive(f"write_bandwidth of level '{self.name}'", self.write_rate)

    @property
    def write_rate(self) -> float:
        """GB/s of writes to this level, all units together."""
        rate = self.write_bandwidth
        return self.bandwidth if rate is None else rate

    @property
    def to_write(self) -> int:
        """Bytes that the smallest write to this level moves."""
        size = self.write_transaction
        return self.transaction if size is None else size

    def transfer_seconds(self, read: int, written: int) -> float:
        """Return how long bytes take to be read from and written to this level."""
        return read / (self.bandwidth * 1e9) + written / (self.write_rate * 1e9)


@dataclass(frozen=True)
class Peak:
    """Most arithmetic that a device does on one element type, without matrices.

    Attributes:
        dtype: Element type as in MLIR, e.g. "f64".
        gflops: 1e9 operations per second of all units together, an FMA counts two.

    Raises:
        ValueError: An empty type or an impossible rate.
    """

    dtype: str
    gflops: float

    def __post_init__(self) -> None:
        if not self.dtype:
            raise ValueError("expected a peak to have a dtype")
        _require_positive(f"gflops of peak '{self.dtype}'", self.gflops)


@dataclass(frozen=True)
class Instruction:
    """A matrix instruction: the fastest one for its types, or what code uses.

    Attributes:
        name: As the maker of the device spells it; unique in a device.
        shape: Rows, columns and reduction of one instruction: (m, n, k).
        operand: Element type of the factors.
        accumulator: Element type of the result.
        gflops: 1e9 operations per second of all units together, dense.

    Raises:
        ValueError: An empty text, or a number that no instruction can have.
    """

    name: str
    shape: tuple[int, int, int]
    operand: str
    accumulator: str
    gflops: float

    def __post_init__(self) -> None:
        if not (self.name and self.operand and self.accumulator):
            raise ValueError("expected an instruction to have a name and two types")
        if len(self.shape) != 3 or min(self.shape) < 1:
            raise ValueError(
                f"expected shape of instruction '{self.name}' to be three positive "
                f"sizes, got {list(self.shape)}"
            )
        _require_positive(f"gflops of instruction '{self.name}'", self.gflops)


@dataclass(frozen=True)
class LibraryRate:
    """What the library of a vendor does of one operation on one element type.

    Attributes:
        name: Unique in a device.
        operation: One of `LIBRARY_OPERATIONS`.
        operand: Element type of the factors.
        gflops: 1e9 operations per second of a call that is large, an FMA counts two.

    Raises:
        ValueError: An empty text, another operation, or an impossible rate.
    """

    name: str
    operation: str
    operand: str
    gflops: float

    def __post_init__(self) -> None:
        if not (self.name and self.operand):
            raise ValueError("expected a library to have a name and a type")
        if self.operation not in LIBRARY_OPERATIONS:
            raise ValueError(
                f"expected operation of library '{self.name}' to be one of "
                f"{' or '.join(LIBRARY_OPERATIONS)}, got '{self.operation}'"
            )
        _require_positive(f"gflops of library '{self.name}'", self.gflops)


@dataclass(frozen=True)
class Device:
    """A processor with its memory levels.

    Attributes:
        name: Key in `devices.toml`.
        levels: Memory levels, outermost first.
        units: Processing units: cores of a CPU, multiprocessors of a GPU.
        threads: Most threads that work on one tile together; 1 on a CPU.
        warp: Threads that execute in lockstep; 1 on a CPU.
        vector_bits: Width of the widest load of one thread.
        peak_gflops: 1e9 f32 operations per second of all units together, an FMA
            counted as two, without matrix instructions.
        peaks: The same for other element types.
        instructions: Matrix instructions.
        launch_seconds: From the start of a kernel of no work on all units to its end.
        window_passes: Passes over shared memory in which the threads of a warp read an
            element of what windows multiply each, all that comes with it included.
        half_window_passes: The same of elements of 16 bits.
        shared_sum_passes: Passes that a multiply-add of each of them takes whose sum
            lies in shared memory.
        product_slots: Slots of arithmetic that a multiply-add of a product by threads
            or warpgroups takes with the loads of its factors, where it has one.
        libraries: What libraries do, of the operations that they may be called for.

    Raises:
        ValueError: Numbers that no device can have, or levels of the same name.
    """

    name: str
    levels: tuple[Level, ...]
    units: int
    threads: int
    warp: int
    vector_bits: int
    peak_gflops: float
    peaks: tuple[Peak, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    launch_seconds: float = LAUNCH_SECONDS
    window_passes: float = WINDOW_PASSES
    half_window_passes: float = HALF_WINDOW_PASSES
    shared_sum_passes: float = SHARED_SUM_PASSES
    product_slots: float = PRODUCT_SLOTS
    libraries: tuple[LibraryRate, ...] = ()

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("expected a device to have a name")
        for field in ("units", "threads", "warp", "vector_bits"):
            _require(f"{field} of device '{self.name}'", getattr(self, field), least=1)
        _require_positive(f"peak_gflops of device '{self.name}'", self.peak_gflops)
        launch = f"launch_seconds of device '{self.name}'"
        _require_positive(launch, self.launch_seconds)
        for field in _OF_THREADS:
            number = f"{field} of device '{self.name}'"
            _require_positive(number, getattr(self, field))
        if not self.levels:
            raise ValueError(f"expected device '{self.name}' to have a memory level")
        _require_distinct("level names", self.level_names())
        _require_distinct("dtypes of peaks", ("f32", *(p.dtype for p in self.peaks)))
        _require_distinct("instructions", tuple(i.name for i in self.instructions))
        _require_distinct("libraries", tuple(i.name for i in self.libraries))
        known = [(i.operation, i.operand) for i in self.libraries]
        if len({*known}) < len(known):
            raise ValueError("expected one library for an operation on a type")

    def level_names(self) -> tuple[str, ...]:
        """Return the names of the levels, outermost first."""
        return tuple(level.name for level in self.levels)

    def level(self, name: str) -> Level:
        """Return a level by name.

        Raises:
            KeyError: The device has no such level.
        """
        return self.levels[self.level_index(name)]

    def peak(self, dtype: str) -> float | None:
        """Return the peak for an element type in GFLOP/s, None if it is not stated."""
        stated = {"f32": self.peak_gflops, **{p.dtype: p.gflops for p in self.peaks}}
        return stated.get(dtype)

    def library_rate(self, operation: str, operand: str) -> float | None:
        """Return the GFLOP/s of a library, None where no call is known."""
        rates = {(one.operation, one.operand): one.gflops for one in self.libraries}
        return rates.get((operation, operand))

    def sharers(self, name: str) -> int:
        """Return how many processing units share one memory of a level, rounded up.

        Raises:
            KeyError: The device has no such level.
        """
        return max(1, -(-self.units // self.level(name).units))

    def level_index(self, name: str) -> int:
        """Return how many levels lie outside of the named one.

        Raises:
            KeyError: The device has no such level.
        """
        names = self.level_names()
        if name not in names:
            raise KeyError(f"device '{self.name}' has no level '{name}'")
        return names.index(name)


def _require(what: str, value: int, *, least: int) -> None:
    if value < least:
        raise ValueError(f"expected {what} to be at least {least}, got {value}")


def _require_distinct(what: str, names: tuple[str, ...]) -> None:
    repeated = next((n for n in names if names.count(n) > 1), None)
    if repeated is not None:
        raise ValueError(f"expected distinct {what}, got '{repeated}' twice")


def _require_positive(what: str, value: float) -> None:
    # Written so that NaN fails as well.
    if not 0 < value < float("inf"):
        raise ValueError(f"expected {what} to be positive and finite, got {value}")
