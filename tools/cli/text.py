"""Owns the layout of what the sub-commands print."""

from __future__ import annotations

from collections.abc import Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned columns, the first one to the left, others to the right.

    Args:
        rows: Of equal length; the first holds the headings.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(cell.rjust(w) for cell, w in others)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def bytes_text(count: int) -> str:
    """Return a number of bytes in the largest unit that leaves at least one of it."""
    value = float(count)
    for unit in _UNITS[:-1]:
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} {_UNITS[-1]}"
