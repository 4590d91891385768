"""Owns nestings: what lies in tuples, lists and dicts, and how to write it as JSON.

What programs take and what they return is nested so. What is told of a leaf is up to
whoever describes it; constants are part of the nesting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

PLAIN: Final = (bool, int, float, str, type(None))
_KINDS: Final[dict[str, type]] = {"tuple": tuple, "list": list, "dict": dict}

L = TypeVar("L")


@dataclass(frozen=True)
class Constant:
    """A plain value."""

    value: Any


@dataclass(frozen=True)
class Group(Generic[L]):
    """A tuple, a list or a dict with plain keys.

    Attributes:
        kind: "tuple", "list" or "dict".
        items: What is in it, in order, with its key: of a tuple or list its position.
    """

    kind: str
    items: tuple[tuple[Any, Nested[L]], ...]


Nested: TypeAlias = Constant | Group[L] | L


def items_of(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return what is in a tuple, list or dict, with its keys; nothing for others."""
    if type(value) not in _KINDS.values():
        return ()
    return value.items() if type(value) is dict else enumerate(value)


def nested_of(
    value: object,
    leaf: Callable[[Any], L | None],
    refuse: Callable[[str, str], Exception],
    where: str = "",
) -> Nested[L]:
    """Describe a value.

    Args:
        value: The value.
        leaf: Describes a leaf; None if a value is none.
        refuse: Returns what to raise for another value, by its place and its type.
        where: Place of the value.
    """
    found = leaf(value)
    if found is not None:
        return found
    kind = type(value)
    if kind in PLAIN:
        return Constant(value)
    pairs = list(items_of(value))
    is_group = kind in _KINDS.values() and all(type(key) in PLAIN for key, _ in pairs)
    if not is_group:
        raise refuse(where, kind.__name__)
    described = (
        (key, nested_of(item, leaf, refuse, f"{where}[{key!r}]")) for key, item in pairs
    )
    return Group(kind.__name__, tuple(described))


def leaves_of(part: Nested[L], name: str = "") -> Iterator[tuple[str, L]]:
    """Yield the leaves in order, each with a name such as "pair.0"."""
    if isinstance(part, Group):
        for key, item in part.items:
            yield from leaves_of(item, f"{name}.{key}" if name else str(key))
    elif not isinstance(part, Constant):
        yield name, part


def built(part: Nested[L], value: Callable[[L], Any]) -> Any:
    """Return what is described, with values for the leaves; they are asked in order."""
    if isinstance(part, Constant):
        return part.value
    if not isinstance(part, Group):
        return value(part)
    values = [built(item, value) for _, item in part.items]
    if part.kind == "dict":
        keys = (key for key, _ in part.items)
        return dict(zip(keys, values, strict=True))
    return tuple(values) if part.kind == "tuple" else values


def mismatch(part: Constant | Group[L], value: object) -> str:
    """Say how a value differs from what is described, items aside; "" if it does not.

    The words follow those that name the value.
    """
    if isinstance(part, Constant):
        # By their text: zeros differ in sign, and a NaN is as good as another.
        same = type(value) is type(part.value) and repr(value) == repr(part.value)
        return "" if same else f" is {value!r}, compiled for {part.value!r}"
    if type(value) is not _KINDS[part.kind]:
        return f" is a {type(value).__name__}, not a {part.kind}"
    found, expected = (
        [key for key, _ in pairs] for pairs in (items_of(value), part.items)
    )
    if part.kind != "dict" and len(found) != len(expected):
        return f" has {len(found)} items, expected {len(expected)}"
    # The program may have gone through a dict in its order.
    if list(map(repr, found)) != list(map(repr, expected)):
        return f" has keys {found}, in this order, expected {expected}"
    return ""


def to_json(
    part: Constant | Group[L], described: Callable[[Nested[L]], Any]
) -> tuple[str, Any]:
    """Return the kind and the content of what is no leaf, as JSON data.

    Args:
        part: It.
        described: Returns the JSON data of what is in it.
    """
    if isinstance(part, Constant):
        return "constant", part.value
    if part.kind == "dict":
        return part.kind, [[key, described(item)] for key, item in part.items]
    return part.kind, [described(item) for _, item in part.items]


def from_json(kind: str, content: Any, read: Callable[[Any], Nested[L]]) -> Nested[L]:
    """Rebuild what is no leaf from its kind and content.

    Args:
        kind: As `to_json` has given it.
        content: The same.
        read: Rebuilds what is in it from its JSON data.

    Raises:
        ValueError: There is no such kind.
    """
    if kind == "constant":
        return Constant(content)
    if kind not in _KINDS:
        raise ValueError(f"there is no kind of value '{kind}'")
    pairs = content if kind == "dict" else enumerate(content)
    return Group(kind, tuple((key, read(item)) for key, item in pairs))
