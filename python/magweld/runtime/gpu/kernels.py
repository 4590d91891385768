"""Owns the kernels of a program on a GPU: loaded once, launched on a stream."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from magweld.artifact import DeviceLaunch, Program
from magweld.runtime.errors import ProgramError
from magweld.runtime.gpu.driver import DeviceError, Driver, Geometry
from magweld.runtime.layout import Layout
from magweld.runtime.machine import kernel_symbols
from magweld.tensor_map import MAP_ALIGNMENT, MAP_BYTES, TensorMap

_WORD_BYTES = 8


@dataclass(frozen=True)
class _Kernel:
    function: Any
    geometry: Geometry
    launch: DeviceLaunch


class GpuKernels:
    """The kernels of a program, in the memory of one GPU as long as this value.

    Args:
        program: A checked program.
        driver: The driver; the GPU is its current device.
        stream: Returns the stream to launch on.
        synchronous: Whether each launch is waited for, so that a failure names the
            kernel that failed.

    Raises:
        ProgramError: A step has no launch, or a launch no code.
        DeviceError: The driver does not take the code.
    """

    def __init__(
        self,
        program: Program,
        driver: Driver,
        stream: Callable[[], int],
        *,
        synchronous: bool = False,
    ) -> None:
        self._driver = driver
        self._stream = stream
        self._synchronous = synchronous
        every = (program, *program.parts)
        # A loop has entries for its results behind those of its values.
        self._count = max(len(one.values) + len(one.results) for one in every)
        modules: dict[tuple[int, ...], Any] = {}
        self._steps: dict[str, list[_Kernel]] = {s: [] for s in kernel_symbols(program)}
        for launch in program.launches:
            _check_launch(program, launch)
            _check_maps(launch, driver)
            if launch.images not in modules:
                modules[launch.images] = _load(program, launch, driver)
                weakref.finalize(self, driver.unload, modules[launch.images])
            kernel = _kernel(launch, modules[launch.images], driver)
            self._steps.setdefault(launch.step, []).append(kernel)
        missing = [symbol for symbol, kernels in self._steps.items() if not kernels]
        if missing:
            raise ProgramError("no-launch", f"no launches for {', '.join(missing)}")

    write_addresses = None

    def whole_calls(self, layout: Layout, checks: object, natives: object) -> None:
        """Return none: such a function works in the memory of the process."""

    def launcher(
        self, symbols: Sequence[str], table_address: int
    ) -> Callable[[], object]:
        """Return a function that launches the kernels of some steps in order.

        Args:
            symbols: The steps.
            table_address: Addresses of all values.
        """
        kernels = [kernel for symbol in symbols for kernel in self._steps[symbol]]
        # Whoever binds the steps of a frame runs them on the stream that it is on now.
        stream = self._stream()
        bound = [
            (run, kernel.launch)
            for kernel in kernels
            for run in self._prepared(kernel, stream, table_address)
        ]
        driver, synchronous = self._driver, self._synchronous

        def launch() -> None:
            for run, launched in bound:
                code = run()
                if code:
                    raise _named(driver.error("device-launch", code), launched)
                if synchronous:
                    _wait(driver, stream, launched)

        return launch

    def _prepared(
        self, kernel: _Kernel, stream: int, table_address: int
    ) -> Iterator[Callable[[], int]]:
        """Yield what launches a kernel with the addresses that a table has then."""
        launched = kernel.launch
        places = [table_address + _WORD_BYTES * value for value in launched.pointers]
        if launched.is_table or launched.shifts:
            table = (ctypes.c_int64 * self._count).from_address(table_address)
            gather = _Gather.of(launched, table)
            yield gather.run
            first = gather.cells.ctypes.data
            end = first + _WORD_BYTES * len(places)
            places = list(range(first, end, _WORD_BYTES))
        for one in launched.maps:
            encoded = _EncodedMap(self._driver, one.map, places[one.position])
            yield encoded.run
            places[one.position] = encoded.place
        yield self._driver.prepare(
            kernel.function,
            kernel.geometry,
            stream,
            places,
            is_table=launched.is_table,
        )

    def address_of(self, symbol: str) -> int:
        """Raise an error: kernels are launched by the driver.

        Raises:
            DeviceError: Always.
        """
        raise DeviceError("no-control", f"{symbol} has no address on the host")

    def control(self, code: int, place: int, jumps: int) -> int:
        """Raise an error: truth values are not where the host reads them.

        Raises:
            DeviceError: Always.
        """
        raise DeviceError("no-control", "programs for GPUs do not branch")

    def looper(
        self, symbols: Sequence[str], table_address: int, trips: int, moves: list[int]
    ) -> Callable[[], object]:
        """Return a function that launches the kernels of some steps several times.

        Args:
            symbols: The steps.
            table_address: Addresses of all values.
            trips: How often.
            moves: What is done to the table each time: an entry to set, an entry to
                read and what to add to that, one such three after the other.
        """
        launch = self.launcher(symbols, table_address)
        table = (ctypes.c_int64 * self._count).from_address(table_address)
        triples = list(zip(moves[::3], moves[1::3], moves[2::3], strict=True))

        def loop() -> None:
            for _ in range(trips):
                launch()
                for to, source, more in triples:
                    table[to] = table[source] + more

        return loop


@dataclass(frozen=True)
class _Gather:
    """Pointers of a launch that lie together, or begin within their values.

    Attributes:
        table: Addresses of all values.
        values: Which of them each pointer is of.
        shifts: What is added to each.
        cells: Where the pointers go.
    """

    table: NDArray[np.int64]
    values: NDArray[np.int64]
    shifts: NDArray[np.int64]
    cells: NDArray[np.int64]

    @classmethod
    def of(cls, launch: DeviceLaunch, table: ctypes.Array[ctypes.c_int64]) -> _Gather:
        count = len(launch.pointers)
        values = np.array(launch.pointers, np.int64)
        shifts = np.array(launch.shifts or [0] * count, np.int64)
        cells = np.empty(count, np.int64)
        return cls(np.ctypeslib.as_array(table), values, shifts, cells)

    def run(self) -> int:
        """Write the pointers of a launch; as launches, return that this is no error."""
        np.add(self.table[self.values], self.shifts, out=self.cells)
        return 0


class _EncodedMap:
    """The map of a tensor, made anew where the tensor of a call lies elsewhere.

    Args:
        driver: What makes it.
        map_: What it says.
        cell: Where in memory the address of the tensor is at each launch.

    Attributes:
        place: Where the map is.
    """

    def __init__(self, driver: Driver, map_: TensorMap, cell: int) -> None:
        self._encode = driver.encode
        self._map = map_
        self._cell = ctypes.c_uint64.from_address(cell)
        self._room = (ctypes.c_uint8 * (MAP_BYTES + MAP_ALIGNMENT))()
        begin = ctypes.addressof(self._room)
        self.place = -(-begin // MAP_ALIGNMENT) * MAP_ALIGNMENT
        self._address: int | None = None

    def run(self) -> int:
        """Make the map, if it is of another address; return 0 or the driver's code."""
        address = self._cell.value
        if address == self._address:
            return 0
        # A map that was begun and not made is of no tensor.
        self._address = None
        code = self._encode(self._map, address, self.place)
        if not code:
            self._address = address
        return code


def _check_maps(launch: DeviceLaunch, driver: Driver) -> None:
    positions = [one.position for one in launch.maps]
    known = all(0 <= position < len(launch.pointers) for position in positions)
    wrong = [text for one in launch.maps for text in one.map.violations()]
    if launch.maps and (
        launch.is_table or not known or len({*positions}) < len(positions)
    ):
        wrong.append("expected each of another parameter")
    if wrong:
        message = f"the launch of '{launch.kernel}' has no such tensor maps: {wrong[0]}"
        raise ProgramError("bad-launch", message)
    if launch.maps and not driver.has_tensor_maps:
        message = "its copies need tensor maps, which this driver does not make"
        raise _named(DeviceError("device-driver", message), launch)


def _wait(driver: Driver, stream: int, launched: DeviceLaunch) -> None:
    try:
        driver.synchronize(stream)
    except DeviceError as error:
        raise _named(error, launched) from error


def _check_launch(program: Program, launch: DeviceLaunch) -> None:
    known = all(0 <= value < len(program.values) for value in launch.pointers)
    coded = all(0 <= image < len(program.objects) for image in launch.images)
    extents = (*launch.grid, *launch.block)
    sized = min(extents) > 0 and len(extents) == 6 and launch.shared_bytes >= 0
    shared_out = launch.members > 0 and len(launch.pointers) % launch.members == 0
    shifted = not launch.shifts or len(launch.shifts) == len(launch.pointers)
    if not (known and coded and sized and shared_out and shifted and launch.images):
        message = f"the launch of '{launch.kernel}' names no value, code or threads"
        raise ProgramError("bad-launch", message)


def _load(program: Program, launch: DeviceLaunch, driver: Driver) -> Any:
    """Load the first image that the driver takes."""
    refused = []
    for image in launch.images:
        try:
            return driver.load(program.objects[image])
        except DeviceError as error:
            refused.append(error)
    raise _named(refused[-1], launch) from refused[-1]


def _kernel(launch: DeviceLaunch, module: Any, driver: Driver) -> _Kernel:
    geometry = Geometry(launch.grid, launch.block, launch.shared_bytes)
    try:
        function = driver.function(module, launch.kernel, launch.shared_bytes)
    except DeviceError as error:
        raise _named(error, launch) from error
    return _Kernel(function, geometry, launch)


def _named(error: DeviceError, launch: DeviceLaunch) -> DeviceError:
    """Say which kernel an error is about, and what that computes."""
    text = str(error).removesuffix(f" [{error.id}]")
    sources = ", ".join(launch.sources)
    of = f" ({sources})" if sources else ""
    return DeviceError(error.id, f"kernel '{launch.kernel}'{of}: {text}")
