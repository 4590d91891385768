"""Owns portable artifacts in Python: saved, loaded and called with arrays of numpy.

It needs numpy alone: neither torch nor LLVM nor the C runtime. It does what
`magweld.c` does.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import operator
import os
import sys
import threading
import weakref
from _thread import start_new_thread
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count, pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from magweld.aot.errors import ArtifactError
from magweld.aot.files import write_whole
from magweld.aot.nested import (
    Constant,
    Group,
    Nested,
    built,
    from_json,
    items_of,
    leaves_of,
    mismatch,
)
from magweld.deploy.portable_file import (
    ALIGNMENT,
    PAGE,
    Code,
    Copy,
    Form,
    Kind,
    Place,
    Port,
    PortableProgram,
    decode,
)

Array = NDArray[Any]

# numpy has no such type: their bits are passed.
_CARRIERS = {"bfloat16": "uint16"}
# Flags of /proc/cpuinfo, those of a level beside those of the one before.
_FLAGS = {
    3: frozenset(
        "pni ssse3 sse4_1 sse4_2 popcnt cx16 lahf_lm "
        "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave".split()
    ),
    4: frozenset("avx512f avx512bw avx512cd avx512dq avx512vl".split()),
}
# Of more kinds of shapes errors tell the ranges.
_LISTED = 8
_CPUINFO = Path("/proc/cpuinfo")
_RANGE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_PARALLEL = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
# What generated code calls to run a kernel in several threads.
_CALLBACK = "magweld_parallel"
# The same for one thread, without Python: mov rax, rsi; xor esi, esi; jmp rax. It
# calls the function of the second argument with the first one, 0 and the third one.
_ALONE = Code(0, bytes.fromhex("4889f031f6ffe0").ljust(PAGE, b"\0"), PAGE, ())


class PortableArtifact:
    """A program that runs without torch; call it as the model was called.

    Arrays take the place of tensors: of bfloat16 the bits, as uint16. Inputs may have
    any strides. Results are new arrays, row-major. Any number of threads may call it.

    Args:
        content: The bytes of a portable artifact.
        threads: How many threads a call uses; None and 0 are one for each usable CPU.

    Raises:
        ArtifactError: They are none, or of another version.
        ValueError: The number of threads is negative.
        TypeError: It is none.
    """

    def __init__(self, content: bytes, threads: int | None = None) -> None:
        wanted = operator.index(threads or 0)
        if wanted < 0:
            raise ValueError(f"{wanted} threads, expected 0 or more")
        self._program = decode(content)
        self._structure = _structure(self._program)
        self._content = content
        self._threads = wanted or len(os.sched_getaffinity(0))

    def __repr__(self) -> str:
        ports = f"{len(self._program.inputs)} inputs, {len(self._program.outputs)}"
        return f"<{type(self).__name__}: {ports} outputs, {len(self._content)} bytes>"

    @property
    def program(self) -> PortableProgram:
        """What it holds."""
        return self._program

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact to a file, whole or not at all.

        Raises:
            OSError: It cannot be written.
        """
        write_whole(Path(path), self._content)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Raises:
            TypeError: Arguments of other number or types.
            ValueError: Arguments of other shapes or constants, or one array twice
                where the program asks which are the same.
            IndexError: The program reads elements of a tensor as indices, and one is
                out of range.
            ArtifactError: `artifact-host`: this CPU has no level that code is for.
        """
        outputs = self.run(self._flat(args, kwargs))
        return built(self._structure.result, outputs.__getitem__)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run the program on a flat list of arrays, as C does; see `__call__`."""
        ports = self._program.inputs
        if len(inputs) != len(ports):
            raise TypeError(f"{len(inputs)} inputs, expected {len(ports)}")
        pairs = zip(inputs, ports, strict=True)
        return self._loaded.run([_checked(x, port) for x, port in pairs])

    @cached_property
    def _loaded(self) -> _Loaded:
        return _Loaded(self._program, self._content, self._threads)

    def _flat(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        positional, keywords = self._structure.positional, self._structure.keywords
        if len(args) != len(positional) or kwargs.keys() != keywords.keys():
            raise TypeError(
                f"{len(args)} positional arguments and {sorted(kwargs)}, expected "
                f"{len(positional)} and {sorted(keywords)}"
            )
        expected = [*positional, *keywords.values()]
        values = [*args, *(kwargs[name] for name in keywords)]
        found: list[Any] = []
        for number, (value, described) in enumerate(zip(values, expected, strict=True)):
            found += _taken_apart(f"argument {number}", value, described)
        if self._structure.distinct and len(set(map(id, found))) < len(found):
            raise ValueError(
                "one array is passed twice, and the program asks which are the same"
            )
        return found


@dataclass(frozen=True)
class _Structure:
    """How a program puts its inputs and its result together, with numbers of tensors.

    Attributes:
        positional: The positional arguments.
        keywords: The keyword arguments, by name.
        result: What the program returns.
        distinct: Whether no array may be passed twice.
    """

    positional: list[Nested[int]]
    keywords: dict[str, Nested[int]]
    result: Nested[int]
    distinct: bool


def _structure(program: PortableProgram) -> _Structure:
    """Return how a program puts its inputs and its result together.

    Raises:
        ArtifactError: `artifact-damaged`: they do not fit its tensors.
    """
    try:
        data = json.loads(program.structure)
        keywords = {name: _read(one) for name, one in data["keywords"]}
        found = _Structure(
            list(map(_read, data["positional"])),
            keywords,
            _read(data["result"]),
            bool(data.get("distinct")),
        )
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        # The text is data from a file: reading it fails anywhere.
        raise _no_structure(f"{type(error).__name__}: {error}") from error
    for name, parts, ports in (
        ("inputs", [*found.positional, *keywords.values()], program.inputs),
        ("outputs", [found.result], program.outputs),
    ):
        numbers = [number for part in parts for _, number in leaves_of(part)]
        if numbers != list(range(len(ports))):
            raise _no_structure(f"its {name} are not those of the program")
    return found


def _read(described: Any) -> Nested[int]:
    ((kind, content),) = described.items()
    return content if kind == "tensor" else from_json(kind, content, _read)


def _no_structure(reason: str) -> ArtifactError:
    message = f"no intact portable artifact: the structure is none, {reason}"
    return ArtifactError("artifact-damaged", message)


def _taken_apart(where: str, value: Any, described: Nested[int]) -> Iterator[Any]:
    """Yield the arrays of an argument in order.

    Raises:
        TypeError: It is nested otherwise than described.
        ValueError: A constant differs.
    """
    if not isinstance(described, Constant | Group):
        yield value
        return
    problem = mismatch(described, value)
    if problem:
        kind = ValueError if isinstance(described, Constant) else TypeError
        raise kind(where + problem)
    if isinstance(described, Group):
        pairs = zip(items_of(value), described.items, strict=True)
        for (key, item), (_, expected) in pairs:
            yield from _taken_apart(f"{where}[{key!r}]", item, expected)


def _checked(value: object, port: Port) -> Array:
    name = f"input '{port.name}'"
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} is a {type(value).__name__}, expected a numpy array")
    expected = _numpy_dtype(port.dtype)
    if value.dtype != expected:
        raise TypeError(f"{name} has type {value.dtype}, expected {expected}")
    return np.require(value, requirements=("C", "A"))


def _numpy_dtype(dtype: str) -> np.dtype[Any]:
    return np.dtype(_CARRIERS.get(dtype, dtype))


class _Loaded:
    """The machine code of a program in memory, for this CPU."""

    def __init__(self, program: PortableProgram, content: bytes, threads: int) -> None:
        self._program = program
        self._data = _aligned_bytes(len(content))
        self._data[:] = np.frombuffer(content, np.uint8)
        self._workers = _Workers(threads)
        self._parallel = _PARALLEL(self._workers.run)
        self._alone = _Image(_ALONE, 0) if threads == 1 else None
        level = _level(program)
        self._images = {
            number: self._image(code)
            for number, code in enumerate(program.codes)
            if code.level == level
        }
        # Only parallel kernels call back into Python, and not for one thread.
        self._calls_back = {
            number
            for number, code in enumerate(program.codes)
            if self._alone is None and any(n == _CALLBACK for _, n in code.imports)
        }

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run the form for the shapes of some inputs."""
        form = self._form(tuple(value.shape for value in inputs))
        outputs = [
            np.empty(shape, _numpy_dtype(port.dtype))
            for shape, port in zip(form.outputs, self._program.outputs, strict=True)
        ]
        frame = _aligned_bytes(form.frame_bytes)
        memory = {
            Kind.INPUT: inputs,
            Kind.OUTPUT: outputs,
            Kind.FRAME: [frame],
            Kind.DATA: [self._data],
        }
        addresses = {
            kind: [array.ctypes.data for array in arrays]
            for kind, arrays in memory.items()
        }
        addresses |= {Kind.NONE: [0], Kind.RUNTIME: [0]}
        table = (ctypes.c_void_p * len(form.table))(
            *(addresses[p.kind][p.index] + p.offset for p in form.table)
        )
        address = self._images[form.code].address + form.entry
        run = partial(self._enter, address, table, memory)
        calls_back = form.code in self._calls_back
        failure = self._workers.returned(run) if calls_back else run()
        if failure:
            raise IndexError(self._program.failures[failure - 1])
        for copy in form.copies:
            if all(extent for extent, *_ in copy.axes):
                target = _strided(memory, copy, copy.target, 2)
                target[...] = _strided(memory, copy, copy.source, 1)
        return outputs

    def _form(self, shapes: tuple[tuple[int, ...], ...]) -> Form:
        for form in self._program.forms:
            if form.inputs == shapes and form.code in self._images:
                return form
        raise ValueError(
            f"inputs of shapes {shapes}, compiled for {_covered(self._program)}"
        )

    def _enter(self, address: int, table: Any, memory: object) -> int:
        """Run an entry function on a table of addresses of some memory.

        Code and memory live as long as this call.
        """
        return int(_ENTRY(address)(ctypes.addressof(table)))

    def _image(self, code: Code) -> _Image:
        if self._alone is not None:
            return _Image(code, self._alone.address)
        return _Image(code, ctypes.cast(self._parallel, ctypes.c_void_p).value or 0)


class _Workers:
    """The threads that run the code of a program.

    No error may leave what machine code calls: it would be lost, and the code would go
    on without what was to be computed.

    Args:
        threads: How many threads a call uses.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._start()

    def _start(self) -> None:
        # Executors and threads of the standard library wait for locks of Python: the
        # handler of a signal that raises may leave one locked for ever. Neither this
        # queue nor starting a thread by the lower module has one.
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._started = 0
        self._process = os.getpid()
        weakref.finalize(self, self._tasks.put, None).atexit = False

    def returned(self, run: Callable[[], int]) -> int:
        """Run code that calls back into Python and return what it returns.

        The main thread waits for another one: it alone runs the handlers of signals,
        and what one raises in a callback would be lost.

        Raises:
            BaseException: What the handler of a signal raises. The code goes on to its
                end, and its results are dropped.
        """
        if threading.current_thread() is not threading.main_thread():
            return run()
        if self._process != os.getpid():
            self._start()  # threads stay behind where a process forks
        results: list[int] = []
        whole = _Parts(lambda begin, end: results.append(run()), tiles=1, parts=1)
        if not self._help(whole):
            whole.work()
        whole.wait()
        return results[0]

    def run(self, table: int, function: int, tiles: int, threads: int) -> None:
        """Run all tiles of a kernel, as `magweld_parallel` of `magweld.c` does.

        Args:
            table: Address of the table of the program.
            function: Address of what runs a range of tiles.
            tiles: How many there are.
            threads: In how many threads at most; 0 is all.
        """
        most = max(min(self._threads, threads or self._threads, tiles), 1)
        parts = _Parts(partial(_RANGE(function), table), tiles, most)
        for _ in range(most - 1):
            if not self._help(parts):
                break
        parts.work()
        parts.wait()

    def _help(self, parts: _Parts) -> bool:
        """Let another thread work; return whether there is one."""
        if sys.is_finalizing():
            return False  # other threads stand still
        if self._started < self._threads:
            try:
                start_new_thread(_work, (self._tasks,))
                self._started += 1
            except RuntimeError:
                pass  # the system gives no more
        if self._started:
            self._tasks.put(parts.work)
        return self._started > 0


def _work(tasks: SimpleQueue[Callable[[], None] | None]) -> None:
    """Do tasks until there is None in place of one, which all threads get."""
    while (task := tasks.get()) is not None:
        task()
        del task  # it holds the memory of a call
    tasks.put(None)


class _Parts:
    """A range of tiles in parts, which threads take one after the other.

    Each part is run once, however many threads work; whoever waits may have to work.

    Args:
        run: Runs the tiles from one number to another.
        tiles: How many there are.
        parts: How many parts they make.
    """

    def __init__(
        self, run: Callable[[int, int], object], tiles: int, parts: int
    ) -> None:
        self._run = run
        self._ranges = [*pairwise(tiles * n // parts for n in range(parts + 1))]
        # One step of the interpreter hands out a number.
        self._numbers = count()
        self._left = parts
        self._lock = threading.Lock()
        # Waiting for a lock is what the handler of a signal may interrupt.
        self._done = threading.Lock()
        self._done.acquire()

    def work(self) -> None:
        """Run parts until each is taken."""
        while (number := next(self._numbers)) < len(self._ranges):
            try:
                self._run(*self._ranges[number])
            finally:
                self._finished()

    def _finished(self) -> None:
        with self._lock:
            self._left -= 1
            if not self._left:
                self._done.release()

    def wait(self) -> None:
        """Wait until each part has been run; once."""
        self._done.acquire()


class _Image:
    """Machine code in memory, for as long as this value lives."""

    def __init__(self, code: Code, parallel: int) -> None:
        self._memory = mmap.mmap(-1, max(len(code.data), 1))
        self._memory[: len(code.data)] = code.data
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        functions = dict(_imports([name for _, name in code.imports], parallel))
        for slot, name in code.imports:
            ctypes.c_void_p.from_buffer(self._memory, slot).value = functions[name]
        _protect(self.address, code.text_bytes, mmap.PROT_READ | mmap.PROT_EXEC)
        rest = len(code.data) - code.text_bytes
        _protect(self.address + code.text_bytes, rest, mmap.PROT_READ)


def _covered(program: PortableProgram) -> str:
    """Return for which shapes there are forms, as text; of many the least and largest.

    Extents may depend on each other: not all that are within these need be there.
    """
    known = list(dict.fromkeys(form.inputs for form in program.forms))
    if len(known) <= _LISTED:
        return ", ".join(sorted(map(str, known)))
    ranks = {tuple(map(len, shapes)) for shapes in known}
    if len(ranks) > 1:
        return f"{len(known)} kinds of shapes of several ranks"
    columns = [
        [(min(extents), max(extents)) for extents in zip(*shapes, strict=True)]
        for shapes in zip(*known, strict=True)
    ]
    words = " ".join(
        f"({', '.join(str(a) if a == b else f'{a}..{b}' for a, b in column)})"
        for column in columns
    )
    return f"{len(known)} kinds of shapes, within {words}"


def _imports(names: Sequence[str], parallel: int) -> Iterator[tuple[str, int]]:
    libraries = [ctypes.CDLL(None), ctypes.CDLL("libm.so.6")]
    for name in names:
        if name == _CALLBACK:
            yield name, parallel
            continue
        found = [lib for lib in libraries if hasattr(lib, name)]
        if not found:
            raise ArtifactError("artifact-damaged", f"there is no function '{name}'")
        address = ctypes.cast(getattr(found[0], name), ctypes.c_void_p).value
        yield name, address or 0


def _protect(address: int, size: int, protection: int) -> None:
    protect: Callable[..., int] = ctypes.CDLL(None, use_errno=True).mprotect
    if size and protect(ctypes.c_void_p(address), ctypes.c_size_t(size), protection):
        code = ctypes.get_errno()
        raise OSError(code, f"cannot protect machine code: {os.strerror(code)}")


def _aligned_bytes(count: int) -> NDArray[np.uint8]:
    whole = np.empty(count + ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start : start + count]


def _strided(
    memory: dict[Kind, Sequence[Array]], copy: Copy, place: Place, which: int
) -> Array:
    """Return the elements of one side of a copy, as integers of their size."""
    whole = memory[place.kind][place.index]
    dtype = np.dtype(f"u{copy.item}")
    return np.ndarray(
        tuple(axis[0] for axis in copy.axes),
        dtype,
        whole.reshape(-1).view(np.uint8),
        place.offset,
        tuple(axis[which] for axis in copy.axes),
    )


def _level(program: PortableProgram) -> int:
    """Return the highest level of this CPU that a program has code for.

    Raises:
        ArtifactError: `artifact-host`.
    """
    known = {code.level for code in program.codes}
    for level in sorted(known & _levels(), reverse=True):
        return level
    names = ", ".join(f"x86-64-v{level}" for level in sorted(known))
    raise ArtifactError(
        "artifact-host", f"the artifact needs a CPU of {names}, which this is not"
    )


def _levels() -> set[int]:
    """Return the levels that this CPU has."""
    flags: set[str] = set()
    for line in _CPUINFO.read_text().splitlines() if _CPUINFO.exists() else ():
        if line.startswith("flags"):
            flags = set(line.partition(":")[2].split())
            break
    found: set[int] = set()
    for level, needed in _FLAGS.items():
        if not needed <= flags:
            break
        found.add(level)
    return found
