"""Owns the GPU that artifacts are checked and timed on: streams, graphs, its clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import torch

import magweld

ROUNDS = 30
SWEPT_BYTES = 256 << 20  # more than the last cache of any GPU
_UNTIMED = 3


class Machine(Protocol):
    """What runs artifacts.

    Attributes:
        device: Where tensors are.
    """

    device: str

    def load(self, path: Path) -> Any:
        """Return an artifact that runs here."""

    def synchronize(self) -> None:
        """Wait for all that was begun; raise what a kernel has done."""

    def streams(self) -> Sequence[Callable[[], AbstractContextManager[object]]]:
        """Return contexts in which work is queued on streams of their own."""

    def captured(self, call: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        """Return a replay of a call as a graph, and where its results are."""

    def microseconds(self, call: Callable[[], Any], rounds: int = ROUNDS) -> float:
        """Return the least time of a call on the GPU, caches swept before each."""


class CurrentGpu:
    """The current GPU of torch."""

    device = "cuda"

    def load(self, path: Path) -> Any:
        """Return an artifact that runs here."""
        return magweld.load(path)

    def synchronize(self) -> None:
        """Wait for all that was begun; raise what a kernel has done."""
        torch.cuda.synchronize()

    def streams(self) -> Sequence[Callable[[], AbstractContextManager[object]]]:
        """Return contexts in which work is queued on streams of their own."""
        streams = [torch.cuda.Stream() for _ in range(2)]
        return [lambda one=one: torch.cuda.stream(one) for one in streams]

    def captured(self, call: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        """Return a replay of a call as a graph, and where its results are."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            call()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = call()
        return graph.replay, results

    def microseconds(self, call: Callable[[], Any], rounds: int = ROUNDS) -> float:
        """Return the least time of a call on the GPU, caches swept before each."""
        sweep = torch.empty(SWEPT_BYTES, dtype=torch.uint8, device=self.device)
        times = []
        for turn in range(rounds + _UNTIMED):
            sweep.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            end.synchronize()
            if turn >= _UNTIMED:
                times.append(start.elapsed_time(end) * 1e3)
        return min(times)
