"""Owns what is seen of tuning while it runs: a bar with the best times so far."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from magweld.progress import load_rich

if TYPE_CHECKING:
    from rich.progress import Progress


class Watcher(Protocol):
    """Is told what tuning does."""

    def begin(self, steps: int) -> None:
        """So many more plans are compiled, or units measured."""
        ...

    def step(self, message: str = "") -> None:
        """One of them is done."""
        ...


class Unwatched:
    """Shows nothing."""

    def begin(self, steps: int) -> None:
        """Do nothing."""

    def step(self, message: str = "") -> None:
        """Do nothing."""


class Bar:
    """Shows the steps on a bar of rich."""

    def __init__(self, progress: Progress) -> None:
        """Make a bar without steps."""
        self._progress = progress
        self._task = progress.add_task("tuning", total=0, message="")
        self._total = 0

    def begin(self, steps: int) -> None:
        """Make the bar longer."""
        self._total += steps
        self._progress.update(self._task, total=self._total)

    def step(self, message: str = "") -> None:
        """Move on by one."""
        self._progress.advance(self._task)
        if message:
            self._progress.update(self._task, message=message)


@contextmanager
def watching(wanted: bool | None) -> Iterator[Watcher]:
    """Give a watcher: a bar on stderr if wanted, by default at a terminal."""
    if wanted is None:
        wanted = sys.stderr.isatty()
    if not wanted:
        yield Unwatched()
        return
    shown = load_rich("rich.progress")
    columns = (
        shown.TextColumn("tuning"),
        shown.BarColumn(),
        shown.MofNCompleteColumn(),
        shown.TimeElapsedColumn(),
        shown.TextColumn("{task.fields[message]}"),
    )
    console = load_rich("rich.console").Console(stderr=True)
    with shown.Progress(*columns, console=console, transient=True) as progress:
        yield Bar(progress)
