"""Owns which shapes of a run follow from the values of tensors."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import fx

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.kinds import RANKS, SIZES
from magweld.frontend.operators.watch import OperatorWatch

# Operators that drop a dimension when its size is one.
_SQUEEZES: Final = ("squeeze", "squeeze_copy")
# Operators whose tuple has one tensor per dimension, whatever the sizes are.
_PER_DIMENSION: Final = ("where", "nonzero")


class Shapes:
    """Tensors of a run whose shape follows from values, by node.

    The graph may compute them; what Python learns of their sizes is a value.
    """

    def __init__(self) -> None:
        self._open: set[fx.Node] = set()
        self._rankless: set[fx.Node] = set()

    def __bool__(self) -> bool:
        """Whether there are such tensors."""
        return bool(self._open)

    def is_open(self, node: fx.Node) -> bool:
        """Return whether the shape of a node follows from values."""
        return node in self._open

    def decides(self, name: str, inputs: list[fx.Node]) -> bool:
        """Return whether the answer to a question about tensors is a value."""
        if name in SIZES:
            return any(node in self._open for node in inputs)
        return name in RANKS and any(node in self._rankless for node in inputs)

    def note(self, node: fx.Node, name: str, watch: OperatorWatch, result: Any) -> None:
        """Take note of the shapes of the results of one operator.

        Raises:
            StopRecordingError: The number of results follows from values.
        """
        inputs = node.all_input_nodes
        is_open = any(item in self._open for item in inputs)
        if not is_open and not watch.dynamic and not watch.reads:
            return
        rankless = any(item in self._rankless for item in inputs)
        if name in _SQUEEZES and is_open:
            rankless = True
        if type(result) in (list, tuple) and name not in _PER_DIMENSION:
            if watch.listed:
                raise StopRecordingError("dynamic-shape", name)
        if isinstance(result, torch.Tensor) and result.dim() == 0 and not rankless:
            return
        self._open.add(node)
        if rankless:
            self._rankless.add(node)

    def part(self, whole: fx.Node, part: fx.Node) -> None:
        """Take note that a node is one of the results of another."""
        for group in (self._open, self._rankless):
            if whole in group:
                group.add(part)
