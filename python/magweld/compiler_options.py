"""Owns what a compilation may decide, as a value that travels to the worker."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Literal

_SIZE = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>[kKMGT]?i?)B?")
_PREFIXES = ("", "k", "m", "g", "t")

BATCH_RULE_GROUP = "magweld.batch_rules"
"""Group of the entry points that name rules of other packages for batches."""


def check_batch(minimum: int, maximum: int, depth: int) -> None:
    """Check how many members a batch may have, and how many levels between them.

    Raises:
        ValueError: They do not fit together.
    """
    if minimum < 2:
        raise ValueError(f"expected at least two members, got {minimum}")
    if maximum and maximum < minimum:
        raise ValueError(f"expected a maximum of at least {minimum}, got {maximum}")
    if depth < 0:
        raise ValueError(f"expected a depth of at least 0, got {depth}")


@dataclass(frozen=True)
class CompileOptions:
    """What a compilation may decide.

    Attributes:
        device: A device as `magweld.targets.device` takes it; "cpu" is this machine.
        library: Whether library calls may compute operators.
        fusion: Which operators may share a kernel: all that pay, those that their
            reader computes element by element, or none.
        memory_budget: Bytes that a call may take beside its arguments and results;
            0 is no limit.
        loops: Whether alike iterations become loops.
        batch: Whether independent calls of one kernel become one launch.
        batch_minimum: Fewest members of such a launch, 2 at least.
        batch_maximum: Most members, 0 for no limit.
        batch_depth: Most levels between members, 0 for no limit: a level is how many
            calls wait for each other up to a call.
        batch_rules: Rules of installed packages that keep calls apart, by the names of
            their entry points in `magweld.batch_rules`.
        level: Level of x86-64 that portable code is made for, such as "x86-64-v3";
            "" for code of this process.
    """

    device: str = "cpu"
    library: Literal["auto", "never", "always"] = "auto"
    fusion: Literal["all", "registers", "none"] = "all"
    memory_budget: int = 0
    loops: bool = True
    batch: bool = True
    batch_minimum: int = 2
    batch_maximum: int = 0
    batch_depth: int = 0
    batch_rules: tuple[str, ...] = ()
    level: str = ""

    def __post_init__(self) -> None:
        check_batch(self.batch_minimum, self.batch_maximum, self.batch_depth)

    def text(self) -> str:
        """Return the options as canonical text."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def parse(text: str) -> CompileOptions:
        """Read what `text` wrote."""
        found = json.loads(text)
        rules = tuple(found.pop("batch_rules", ()))
        return CompileOptions(**found, batch_rules=rules)


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
