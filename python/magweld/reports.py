"""Owns the joining of what several compiled graphs tell about themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

_LISTS: Final = ("groups", "graphs", "externals", "tuning")


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
