"""Owns what a backend may return beside a callable."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Inspectable(Protocol):
    """What a compiling backend may return beside being callable."""

    def mlir(self, stage: str) -> str:
        """Return the module at a stage."""

    def report(self) -> dict[str, Any]:
        """Return what was decided, for `explain()`."""


@runtime_checkable
class Repeating(Protocol):
    """What a backend may return that checks its inputs, and need not do so again."""

    def call_alike(self, inputs: list[Any]) -> Any:
        """Run on tensors of the form of those that it has run on."""


@runtime_checkable
class Deciding(Protocol):
    """What a backend may return that finds out what runs it fastest."""

    @property
    def is_decided(self) -> bool:
        """Whether that is known."""
