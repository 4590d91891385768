"""Owns the layout of text for people: columns, and numbers with units."""

from __future__ import annotations

from collections.abc import Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def columns(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return rows as aligned columns, the first ones to the left, others to the right.

    Args:
        rows: Of equal length; the first holds the headings.
        left: How many columns are aligned to the left.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if number < left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
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


def seconds_text(seconds: float) -> str:
    """Return a time in the largest unit that leaves at least one of it, or in ns."""
    for size, unit in _TIMES:
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def shorten(items: Sequence[str], limit: int, separator: str = ", ") -> str:
    """Return the first items in one text, and how many more there are."""
    more = f", ... {len(items) - limit} more" if len(items) > limit else ""
    return separator.join(items[:limit]) + more
