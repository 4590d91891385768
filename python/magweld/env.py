"""Owns every environment variable of magweld: name, type, default and meaning.

A variable is read each time it is asked for, never at import.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)

DEBUG_LEVELS: tuple[str, ...] = (
    "nothing but warnings",
    "the topics of `MAGWELD_LOGS`, without guards and other details",
    "all topics, and what else is logged",
    "tracebacks of internal errors",
)
"""What each level of `DEBUG` adds to the one before it."""

LOG_TOPICS: dict[str, str] = {
    "records": "each record: what was captured, how long that took, where it ends",
    "recompiles": "each call that no record answers, with the guard that failed",
    "breaks": "each reason why a call was not captured as a whole",
    "fallbacks": "what runs through torch or eagerly although it was captured, and why",
    "compiles": "each compilation: what, how long, from the disk cache or not",
    "plans": "the kernels and library calls of each compiled graph, and tuning",
    "guards": "each guard of each record",
}
"""What `LOGS` can show, a logger each."""

COMPILE_MOMENTS = ("background", "now")
"""When `trace` compiles a graph."""

CPU_CAPABILITIES = ("default", "avx2")
"""What of the CPU's instructions generated code may use."""

_BOOLEANS = {"0": False, "false": False, "1": True, "true": True}


class EnvironmentVariableError(ValueError):
    """An environment variable whose text means nothing."""


@dataclass(frozen=True)
class Variable(Generic[T_co]):
    """One environment variable.

    Attributes:
        name: With the prefix `MAGWELD_`.
        type_name: What its text has to be.
        default_text: The default, for readers.
        doc: One sentence on what it does.
        decode: Text to value; raises ValueError.
        default: Makes the value of the unset or empty variable.
    """

    name: str
    type_name: str
    default_text: str
    doc: str
    decode: Callable[[str], T_co]
    default: Callable[[], T_co]

    def get(self) -> T_co:
        """Read the variable.

        Raises:
            EnvironmentVariableError: Its text is ill-formed; the message names it.
        """
        text = os.environ.get(self.name, "").strip()
        if not text:
            return self.default()
        try:
            return self.decode(text)
        except ValueError:
            message = f"{self.name}: expected {self.type_name}, got '{text}'"
            raise EnvironmentVariableError(message) from None


def _natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def _positive(text: str) -> int:
    value = _natural(text)
    if value == 0:
        raise ValueError(text)
    return value


def _debug_level(text: str) -> int:
    value = _natural(text)
    if value >= len(DEBUG_LEVELS):
        raise ValueError(text)
    return value


def _boolean(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text.lower()]


def _one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    def decode(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return decode


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _names(text: str) -> tuple[str, ...]:
    names = (name.strip() for name in text.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError(text)
    return value


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(_path(part) for part in text.split(os.pathsep) if part)


def _default_cache() -> Path:
    # Programs are also run where nothing is compiled, hence nothing is kept.
    import platformdirs

    return platformdirs.user_cache_path("magweld")


CACHE: Variable[bool] = Variable(
    "MAGWELD_CACHE",
    "0 or 1",
    "1",
    "Whether compiled programs are kept on disk and taken from there.",
    _boolean,
    lambda: True,
)

CACHE_DIR: Variable[Path] = Variable(
    "MAGWELD_CACHE_DIR",
    "a directory",
    "`magweld` in the user's cache directory",
    "Where compiled programs are kept.",
    _path,
    _default_cache,
)

CACHE_MAX_BYTES: Variable[int] = Variable(
    "MAGWELD_CACHE_MAX_BYTES",
    "a number of bytes",
    "4294967296",
    "Size above which the least recently used programs leave the disk cache.",
    _natural,
    lambda: 4 << 30,
)

CHECK: Variable[bool] = Variable(
    "MAGWELD_CHECK",
    "0 or 1",
    "0",
    "Whether each call of a compiled program, and each hit of a traced callable with"
    " all its effects, is compared with eager execution.",
    _boolean,
    lambda: False,
)

COMPILE: Variable[str] = Variable(
    "MAGWELD_COMPILE",
    "background or now",
    "background",
    "Whether `trace` compiles behind the calls, which torch answers meanwhile, or"
    " within the call that needs the code.",
    _one_of(COMPILE_MOMENTS),
    lambda: "background",
)

CPU_CAPABILITY: Variable[str] = Variable(
    "MAGWELD_CPU_CAPABILITY",
    "default or avx2",
    "default",
    "Instructions of generated code: all that this CPU has, or none beyond AVX2. To be"
    " set before the process starts. torch has `ATEN_CPU_CAPABILITY` for its own code.",
    _one_of(CPU_CAPABILITIES),
    lambda: "default",
)

DEBUG: Variable[int] = Variable(
    "MAGWELD_DEBUG",
    "a level, 0 to 3",
    "0",
    "How much is logged to stderr; the levels are below.",
    _debug_level,
    lambda: 0,
)

DEVICES: Variable[tuple[Path, ...]] = Variable(
    "MAGWELD_DEVICES",
    "files, separated as in `PATH`",
    "unset",
    "TOML files whose devices are known by name; docs/devices.md has their form.",
    _paths,
    tuple,
)

DUMP_DIR: Variable[Path | None] = Variable(
    "MAGWELD_DUMP_DIR",
    "a directory",
    "unset",
    "Where the IR after every pass and the inputs of failed pipelines are written.",
    _path,
    lambda: None,
)

FORMS_BYTES: Variable[int] = Variable(
    "MAGWELD_FORMS_BYTES",
    "a number of bytes",
    "1073741824",
    "Memory of the forms that a record with changing sizes or numbers has compiled:"
    " code, constants and arena of each. Above it the least recently used ones go.",
    _natural,
    lambda: 1 << 30,
)

LOGS: Variable[tuple[str, ...]] = Variable(
    "MAGWELD_LOGS",
    "topics, separated by commas",
    "none",
    "What is logged to stderr: the topics below, `all`, or `help` for a list of them.",
    _names,
    tuple,
)

PERF: Variable[bool] = Variable(
    "MAGWELD_PERF",
    "0 or 1",
    "0",
    "Whether generated code is named for Linux `perf`, in `/tmp/perf-PID.map`.",
    _boolean,
    lambda: False,
)

RACE: Variable[bool] = Variable(
    "MAGWELD_RACE",
    "0 or 1",
    "1",
    "Whether the first hits of `trace` run compiled code and torch in turn and are"
    " timed, and the faster stays; 0 always takes the compiled code.",
    _boolean,
    lambda: True,
)

SYNC_KERNELS: Variable[bool] = Variable(
    "MAGWELD_SYNC_KERNELS",
    "0 or 1",
    "0",
    "Whether each launch on a GPU is waited for, so that an error names the kernel.",
    _boolean,
    lambda: False,
)

TUNE: Variable[float] = Variable(
    "MAGWELD_TUNE",
    "a number of seconds",
    "0",
    "Time for choosing plans by measuring, for each graph; 0 leaves it to the model.",
    _seconds,
    lambda: 0.0,
)

WORKERS: Variable[int | None] = Variable(
    "MAGWELD_WORKERS",
    "a positive number",
    "one for each core that the process may use",
    "Largest number of compile workers.",
    _positive,
    lambda: None,
)

VARIABLES: tuple[Variable[object], ...] = (
    CACHE,
    CACHE_DIR,
    CACHE_MAX_BYTES,
    CHECK,
    COMPILE,
    CPU_CAPABILITY,
    DEBUG,
    DEVICES,
    DUMP_DIR,
    FORMS_BYTES,
    LOGS,
    PERF,
    RACE,
    SYNC_KERNELS,
    TUNE,
    WORKERS,
)
