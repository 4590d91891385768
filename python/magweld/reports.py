"""Owns the reading and joining of what compiled graphs tell about themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Final, NamedTuple

_LISTS: Final = (
    *("groups", "graphs", "externals", "reasons"),
    *("tuning", "written_out", "control", "remarks"),
)
_NUMBER: Final = re.compile(r"(_\d+)+$")


def joined_reports(compiled: Iterable[Any]) -> dict[str, Any]:
    """Return the reports of some graphs as one; those that have none say nothing."""
    reports = [one.report() for one in compiled if hasattr(one, "report")]
    joined: dict[str, Any] = {
        key: [item for report in reports for item in report.get(key, ())]
        for key in _LISTS
    }
    return {**joined, "pieces": len(reports)}


def joined_texts(compiled: Iterable[Any], stage: str) -> str:
    """Return the modules of some graphs at a stage, one after another.

    More than one are numbered: `// piece 0`. It is "" if none has such text.

    Raises:
        ValueError: There is no such stage on the way to this target.
    """
    texts = [one.mlir(stage) for one in compiled if hasattr(one, "mlir")]
    if len(texts) == 1:
        return str(texts[0])
    return "\n".join(f"// piece {number}\n{text}" for number, text in enumerate(texts))


def operators_of(step: Mapping[str, Any]) -> list[str]:
    """Return what a step computes: names of the captured graph without their numbers.

    Operators that one call of torch became follow each other and count once.
    """
    names = (
        name
        for operator in step["operators"]
        for name in operator["nodes"] or (operator["name"],)
    )
    return plain_names(names) or plain_names([step["name"]])


def plain_names(names: Iterable[str]) -> list[str]:
    """Return names without their numbers, equal ones that follow each other once."""
    return [name for name, _ in groupby(_NUMBER.sub("", name) for name in names)]


class Member(NamedTuple):
    """What a launch runs once: a kernel for one of its members.

    Attributes:
        kernel: Name of the kernel.
        operators: Names of the operators that it computes.
        share: How much of the work of the launch it is, in whatever unit.
    """

    kernel: str
    operators: tuple[str, ...]
    share: float


def members_of(group: Mapping[str, Any]) -> list[Member]:
    """Return what the launch of a report runs: one kernel, a batch, or several."""
    operators = group.get("members", [group.get("operators") or ()])
    count = len(operators)
    kernels = group.get("kernels", [group["kernel"]] * count)
    shares = group.get("shares", [1] * count)
    members = zip(kernels, map(tuple, operators), shares, strict=True)
    return [Member(*member) for member in members]
