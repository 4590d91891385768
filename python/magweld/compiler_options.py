"""Owns what a compilation may decide, as a value that travels to the worker."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Literal

_SIZE = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>[kKMGT]?i?)B?")
_PREFIXES = ("", "k", "m", "g", "t")


@dataclass(frozen=True)
class CompileOptions:
    """What a compilation may decide.

    Attributes:
        device: A device as `magweld.targets.device` takes it; "cpu" is this machine.
        library: Whether library calls may compute operators.
        fusion: Which operators may share a kernel: all that pay, those that melt into
            their reader element by element, or none.
        memory_budget: Bytes that a call may take beside its arguments and results;
            0 is no limit.
        loops: Whether alike iterations become loops.
        batch: Whether independent calls of one kernel become one launch.
        level: Level of x86-64 that portable code is made for, such as "x86-64-v3";
            "" for code of this process.
    """

    device: str = "cpu"
    library: Literal["auto", "never", "always"] = "auto"
    fusion: Literal["all", "registers", "none"] = "all"
    memory_budget: int = 0
    loops: bool = True
    batch: bool = True
    level: str = ""

    def text(self) -> str:
        """Return the options as canonical text."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def parse(text: str) -> CompileOptions:
        """Read what `text` wrote."""
        return CompileOptions(**json.loads(text))


def parse_bytes(size: int | str | None) -> int:
    """Return a number of bytes: 0 for None, and "1.5GiB" or "500 MB" as written.

    Raises:
        ValueError: Not a positive number with a unit.
    """
    if size is None:
        return 0
    match = _SIZE.fullmatch(str(size).strip())
    found = 0
    if match is not None:
        prefix, binary = match["unit"].lower().removesuffix("i"), "i" in match["unit"]
        base = 1024 if binary else 1000
        found = int(float(match["number"]) * base ** _PREFIXES.index(prefix))
    if found <= 0:
        raise ValueError(f"expected a size such as 2GiB or 500MB, got {size!r}")
    return found
