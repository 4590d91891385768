"""Owns what a run must not do with objects that a branch chose or must not touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.state.nodes import Node


class Choices:
    """Tensors that stand for one of two, and the state that may not change now.

    Attributes:
        merged: Ids of tensors that stand for one of two, by the value of a third.
        check_write: Asked before the run changes an object, if anything is to ask.
        sealed: Ids of objects that must not be used now.
    """

    def __init__(self) -> None:
        self.merged: set[int] = set()
        self.check_write: Callable[[Node], None] | None = None
        self.sealed: frozenset[int] = frozenset()

    def check_sealed(self, obj: Any) -> None:
        """Refuse to use an object of which another run would find another content.

        Raises:
            StopRecordingError: It is one of those.
        """
        if id(obj) in self.sealed:
            raise StopRecordingError("custom-function", "forward uses written state")

    def check_identity(self, left: Any, right: Any) -> None:
        """Refuse to compare a tensor that a branch chose with another by `is`.

        Raises:
            StopRecordingError: The answer would depend on the branch.
        """
        for obj, other in ((left, right), (right, left)):
            if id(obj) in self.merged and type(obj) is type(other):
                raise StopRecordingError("tensor-value", "a tensor that a branch chose")

    def check_read(self, container: Any, value: Any, attributes: bool) -> None:
        """Refuse to reach a tensor that a branch chose from where it was before.

        Args:
            container: Object from before the run that is read.
            attributes: Whether the attributes of the container are read.

        Raises:
            StopRecordingError: What is found would depend on the branch.
        """
        if id(value) in self.merged or (attributes and id(container) in self.merged):
            raise StopRecordingError("tensor-value", "a tensor that a branch chose")
