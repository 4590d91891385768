"""Owns the drivers of GPU vendors: code is loaded, kernels are launched."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from magweld.diagnostics import NamedError
from magweld.tensor_map import TensorMap

_logger = logging.getLogger(__name__)

_LOG_BYTES = 8192
# Numbers of the options of cuModuleLoadDataEx and hipModuleLoadDataEx.
_ERROR_LOG, _ERROR_LOG_BYTES = 5, 6
# CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_MAX_SHARED_BYTES = 8
# More shared memory than this has to be asked for.
_SHARED_BYTES_WITHOUT_ASKING = 48 * 1024


class DeviceError(NamedError):
    """A GPU that is missing, is another one than the code is for, or fails."""


@dataclass(frozen=True)
class Geometry:
    """How many threads run a kernel.

    Attributes:
        grid: Blocks in x, y and z.
        block: Threads of a block in x, y and z.
        shared_bytes: Dynamic shared memory of a block.
    """

    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int


class Driver(Protocol):
    """What programs ask of a driver. Each call is about the current device."""

    def load(self, image: bytes) -> Any:
        """Return a module of code.

        Raises:
            DeviceError: `device-code`.
        """

    def function(self, module: Any, kernel: str, shared_bytes: int) -> Any:
        """Return a kernel of a module that may use so much dynamic shared memory.

        Raises:
            DeviceError: `device-code`.
        """

    def prepare(
        self,
        function: Any,
        geometry: Geometry,
        stream: int,
        places: Sequence[int],
        *,
        is_table: bool = False,
    ) -> Callable[[], int]:
        """Return what launches a kernel, and returns 0 or the code of an error.

        Args:
            function: The kernel, whose parameters are bare pointers.
            geometry: Its blocks.
            stream: Where it is queued.
            places: Where in memory the pointers are at each launch.
            is_table: Whether they follow each other, and are one parameter together.
        """

    @property
    def has_tensor_maps(self) -> bool:
        """Whether it makes tensor maps."""

    def encode(self, one: TensorMap, address: int, place: int) -> int:
        """Make the map of a tensor; return 0 or the code of an error.

        Args:
            one: What it says.
            address: Of the tensor, a multiple of 16.
            place: Where the map goes, `MAP_BYTES` at a multiple of `MAP_ALIGNMENT`.
        """

    def error(self, id: str, code: int) -> DeviceError:
        """Return the error of a code, with what the driver says of it."""

    def synchronize(self, stream: int) -> None:
        """Wait until what was launched on a stream has ended.

        Raises:
            DeviceError: `device-failed`.
        """

    def unload(self, module: Any) -> None:
        """Forget a module."""


@dataclass(frozen=True)
class DriverNames:
    """How a vendor spells the functions of a driver; they take the same arguments.

    Attributes:
        library: The shared library.
        load: Module from an image, with options.
        function: Kernel of a module, by name.
        attribute: Sets a limit of a kernel; "" where none has to be set.
        tensor_map: Makes the map of a tensor; "" where there are no such maps.
        launch: Launches a kernel.
        synchronize: Waits for a stream.
        unload: Forgets a module.
        error_name: Name of an error code.
        error_text: What an error code means.
    """

    library: str
    load: str
    function: str
    attribute: str
    tensor_map: str
    launch: str
    synchronize: str
    unload: str
    error_name: str
    error_text: str


CUDA: Final = DriverNames(
    library="libcuda.so.1",
    load="cuModuleLoadDataEx",
    function="cuModuleGetFunction",
    attribute="cuFuncSetAttribute",
    tensor_map="cuTensorMapEncodeTiled",
    launch="cuLaunchKernel",
    synchronize="cuStreamSynchronize",
    unload="cuModuleUnload",
    error_name="cuGetErrorName",
    error_text="cuGetErrorString",
)
HIP: Final = DriverNames(
    library="libamdhip64.so",
    load="hipModuleLoadDataEx",
    function="hipModuleGetFunction",
    attribute="",
    tensor_map="",
    launch="hipModuleLaunchKernel",
    synchronize="hipStreamSynchronize",
    unload="hipModuleUnload",
    error_name="hipDrvGetErrorName",
    error_text="hipDrvGetErrorString",
)


class LibraryDriver:
    """A driver that is a shared library with the functions of CUDA or HIP.

    Args:
        names: How its functions are called.
        path: The library, if it is not where the system finds it.

    Raises:
        DeviceError: `device-driver`: no such library, or one without the functions.
    """

    def __init__(self, names: DriverNames, path: str | None = None) -> None:
        try:
            library = ctypes.CDLL(path or names.library)
            self._load = _typed(library, names.load, 2, [ctypes.c_uint, *_POINTERS])
            self._function = _typed(library, names.function, 3)
            self._launch = _typed(
                library, names.launch, 1, [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
            )
            self._synchronize = _typed(library, names.synchronize, 1)
            self._unload = _typed(library, names.unload, 1)
            self._error_name = _typed(library, names.error_name, 0, _OF_ERROR)
            self._error_text = _typed(library, names.error_text, 0, _OF_ERROR)
            self._attribute = None
            if names.attribute:
                limit = [ctypes.c_int, ctypes.c_int]
                self._attribute = _typed(library, names.attribute, 1, limit)
            self._tensor_map = _tensor_map_of(library, names.tensor_map)
        except (OSError, AttributeError) as error:
            message = f"the driver {names.library} cannot be used: {error}"
            raise DeviceError("device-driver", message) from error

    def load(self, image: bytes) -> Any:
        """Return a module of code; assembly is compiled by the driver.

        Raises:
            DeviceError: `device-code`.
        """
        module = ctypes.c_void_p()
        log = ctypes.create_string_buffer(_LOG_BYTES)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        # Assembly ends with a zero; machine code does not mind one.
        code = self._load(ctypes.byref(module), image + b"\0", 2, options, values)
        if code:
            said = log.value.decode(errors="replace").strip()
            message = f"the driver does not take the code: {self._error(code)}"
            raise DeviceError("device-code", f"{message} {said}".strip())
        return module

    def function(self, module: Any, kernel: str, shared_bytes: int) -> Any:
        """Return a kernel of a module that may use so much dynamic shared memory.

        Raises:
            DeviceError: `device-code`.
        """
        function = ctypes.c_void_p()
        code = self._function(ctypes.byref(function), module, kernel.encode())
        if code == 0 and shared_bytes > _SHARED_BYTES_WITHOUT_ASKING:
            if self._attribute is not None:
                code = self._attribute(function, _MAX_SHARED_BYTES, shared_bytes)
        if code:
            message = f"kernel '{kernel}' with {shared_bytes} bytes of shared memory"
            raise DeviceError("device-code", f"{message}: {self._error(code)}")
        return function

    def prepare(
        self,
        function: Any,
        geometry: Geometry,
        stream: int,
        places: Sequence[int],
        *,
        is_table: bool = False,
    ) -> Callable[[], int]:
        """Return what launches a kernel, and returns 0 or the code of an error.

        Args:
            function: The kernel, whose parameters are bare pointers.
            geometry: Its blocks.
            stream: Where it is queued.
            places: Where in memory the pointers are at each launch; the driver copies
                them before it returns.
            is_table: Whether they follow each other, and are one parameter together.
        """
        taken = places[:1] if is_table else places
        parameters = (ctypes.c_void_p * len(taken))(*taken)
        extents = (*geometry.grid, *geometry.block, geometry.shared_bytes)
        return partial(self._launch, function, *extents, stream, parameters, None)

    @property
    def has_tensor_maps(self) -> bool:
        """Whether it makes tensor maps: CUDA from version 12.0 on."""
        return self._tensor_map is not None

    def encode(self, one: TensorMap, address: int, place: int) -> int:
        """Make the map of a tensor; return 0 or the code of an error.

        Args:
            one: What it says.
            address: Of the tensor, a multiple of 16.
            place: Where the map goes, `MAP_BYTES` at a multiple of `MAP_ALIGNMENT`.

        Raises:
            DeviceError: `device-driver`: it makes no maps.
        """
        if self._tensor_map is None:
            raise DeviceError("device-driver", "this driver makes no tensor maps")
        rank = len(one.extents)
        # The driver counts dimensions from the one that lies side by side.
        extents = (ctypes.c_uint64 * rank)(*reversed(one.extents))
        strides = (ctypes.c_uint64 * rank)(*reversed(one.strides))
        box = (ctypes.c_uint32 * rank)(*reversed(one.box))
        steps = (ctypes.c_uint32 * rank)(*[1] * rank)
        code: int = self._tensor_map(
            *(place, _DATA_TYPES[one.element], rank, address, extents, strides),
            *(box, steps, 0, _SWIZZLES[one.swizzle], _PROMOTED_TO_256, 0),
        )
        return code

    def error(self, id: str, code: int) -> DeviceError:
        """Return the error of a code, with what the driver says of it."""
        return DeviceError(id, self._error(code))

    def synchronize(self, stream: int) -> None:
        """Wait until what was launched on a stream has ended.

        Raises:
            DeviceError: `device-failed`.
        """
        code = self._synchronize(stream)
        if code:
            raise DeviceError("device-failed", self._error(code))

    def unload(self, module: Any) -> None:
        """Forget a module; a driver that is shutting down has done so already."""
        code = self._unload(module)
        if code:
            _logger.debug("a module is not unloaded: %s", self._error(code))

    def _error(self, code: int) -> str:
        words = []
        for ask in (self._error_name, self._error_text):
            text = ctypes.c_char_p()
            if ask(code, ctypes.byref(text)) == 0 and text.value:
                words.append(text.value.decode(errors="replace"))
        return ": ".join(words) or f"error {code}"


# CU_TENSOR_MAP_DATA_TYPE_FLOAT16, _BFLOAT16 and _FLOAT32; CU_TENSOR_MAP_SWIZZLE_NONE
# and _128B; CU_TENSOR_MAP_L2_PROMOTION_L2_256B. What lies outside is zeros.
_DATA_TYPES: Final = {"f16": 6, "bf16": 9, "f32": 7}
_SWIZZLES: Final = {0: 0, 128: 3}
_PROMOTED_TO_256: Final = 3

_POINTERS = [ctypes.c_void_p, ctypes.c_void_p]
_OF_ERROR = [ctypes.c_int, ctypes.c_void_p]


def _tensor_map_of(library: ctypes.CDLL, name: str) -> Any | None:
    """Return the function that makes tensor maps, None where there is none."""
    if not name or not hasattr(library, name):
        return None
    function = getattr(library, name)
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    kind = ctypes.c_int
    function.argtypes = [
        *(pointer, kind, number, pointer, pointer, pointer, pointer, pointer),
        *[kind] * 4,
    ]
    function.restype = ctypes.c_int
    return function


def _typed(
    library: ctypes.CDLL, name: str, pointers: int, others: Sequence[Any] = ()
) -> Any:
    """Return a function of a library: some pointers, then other arguments."""
    function = getattr(library, name)
    function.argtypes = [ctypes.c_void_p] * pointers + list(others)
    function.restype = ctypes.c_int
    return function
