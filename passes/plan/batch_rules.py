"""Owns the rules by which a call of a kernel may not be a member of a batch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import ClassVar, Protocol

from magweld.compiler_options import BATCH_RULE_GROUP


@dataclass(frozen=True)
class MemberCall:
    """A call that may be a member of a batch.

    Attributes:
        kernel: Name of the kernel; calls of one kernel compute the same.
        operators: Names of the operators that it computes.
        moved_bytes: Bytes of its operands and destinations, each once.
        level: The most calls that wait for each other up to this one, itself included.
    """

    kernel: str
    operators: tuple[str, ...]
    moved_bytes: int
    level: int


class BatchRule(Protocol):
    """Keeps calls apart.

    Attributes:
        name: Its name, in remarks and in the option `rules`.
    """

    name: ClassVar[str]

    def refuses(self, call: MemberCall) -> bool:
        """Whether a call stays a launch of its own."""


@dataclass(frozen=True)
class Large:
    """Keep calls apart whose own tiles keep all cores busy.

    Together, their results would leave the caches.

    Attributes:
        member_bytes: Bytes from which a call is on its own.
    """

    name: ClassVar[str] = "large"
    member_bytes: int

    def refuses(self, call: MemberCall) -> bool:
        """Whether a call moves too many bytes."""
        return call.moved_bytes >= self.member_bytes


def installed_rules(names: Collection[str]) -> tuple[BatchRule, ...]:
    """Return rules of installed packages by their names, made without arguments.

    Raises:
        ValueError: No package has such a rule, or what it names is none.
    """
    if not names:
        return ()  # what is installed is read from disk
    points = {point.name: point for point in entry_points(group=BATCH_RULE_GROUP)}
    rules: list[BatchRule] = []
    for name in names:
        if name not in points:
            known = ", ".join(sorted(points)) or "none"
            raise ValueError(f"no batch rule '{name}' is installed; there are: {known}")
        try:
            rule = points[name].load()()
        except Exception as error:  # whatever a package raises while it is imported
            raise ValueError(
                f"the entry point '{name} = {points[name].value}' in "
                f"{BATCH_RULE_GROUP} cannot be loaded: {error}"
            ) from error
        if not callable(getattr(rule, "refuses", None)):
            raise ValueError(f"batch rule '{name}' has no method 'refuses'")
        if getattr(rule, "name", None) != name:
            found = getattr(rule, "name", None)
            raise ValueError(f"batch rule '{name}' is called {found!r}")
        rules.append(rule)
    return tuple(rules)
