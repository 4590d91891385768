"""Annotations that users write, as data, and which of them are in force."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from magweld.frontend.monitor.annotation import unbind
from magweld.frontend.state.mro import is_class


class AnnotationError(ValueError):
    """An annotation that contradicts itself or cannot be applied."""


@dataclass(frozen=True)
class Input:
    """What an annotated callable does with one argument.

    Attributes:
        value_read: It reads the value, nested containers included; the value becomes
            a guard. Without it, it only passes the object on.
        in_place: It changes the object.
    """

    value_read: bool = False
    in_place: bool = False


@dataclass(frozen=True)
class AliasOf:
    """The result is an argument itself.

    Attributes:
        argument: Its position or name.
    """

    argument: int | str


@dataclass(frozen=True)
class ElementOf:
    """The result is an element of a list, tuple or dict that is an argument.

    Attributes:
        argument: Its position or name.
    """

    argument: int | str


@dataclass(frozen=True)
class AttributeOf:
    """The result is what an instance attribute of an argument holds.

    Attributes:
        argument: Its position or name.
        name: The attribute.
    """

    argument: int | str
    name: str


Relation = AliasOf | ElementOf | AttributeOf


@dataclass(frozen=True)
class Output:
    """What an annotated callable returns, when it is nothing new.

    Attributes:
        relation: How the result is reached from the arguments.
        in_place: The callable changes the result before it returns it.
    """

    relation: Relation
    in_place: bool = False


@dataclass(frozen=True)
class UserAnnotation:
    """The annotation of one callable; made by `annotate`.

    Attributes:
        function: The callable.
        as_op_node: A call becomes one operator of the graph and runs on every hit.
        pure_closure: The result follows from the values of the arguments.
        inputs: What happens to arguments, by position or name.
        output: What comes back, None for something new.
    """

    function: Callable[..., Any]
    as_op_node: bool = False
    pure_closure: bool = False
    inputs: Mapping[int | str, Input] = field(default_factory=dict)
    output: Output | None = None


def annotate(
    function: Callable[..., Any],
    *,
    as_op_node: bool = False,
    pure_closure: bool = False,
    inputs: Mapping[int | str, Input] | None = None,
    output: Output | None = None,
) -> UserAnnotation:
    """Describe a callable that the front end cannot look into.

    For a native callable this replaces the refusal `native-call`; a function written
    in Python becomes opaque: its body runs unobserved. The annotation has an effect
    where it is passed on: to `trace(..., annotations=...)`, to a `with annotated(...)`
    block around `trace`, or through the entry points of a library.

    Args:
        function: A function, native function, method of a class, or callable object.
        as_op_node: A call becomes one operator of the graph. It takes tensors and
            values, returns tensors, and runs on every hit. Operators of `torch.library`
            need no annotation.
        pure_closure: The result follows from the values of the arguments, nothing is
            changed. It does not run on hits; the values of the arguments are guarded.
        inputs: What happens to arguments, by position or name. Others are passed on,
            or for `as_op_node` and `pure_closure` read by value.
        output: Says that the result is reached from an argument, or is one. Without it
            the result is a new object.

    Returns:
        The annotation, to be passed on.

    Raises:
        AnnotationError: The parts contradict each other.
    """
    annotation = UserAnnotation(
        function, as_op_node, pure_closure, dict(inputs or {}), output
    )
    for problem, holds in _PROBLEMS.items():
        if holds(annotation):
            raise AnnotationError(f"cannot annotate {_name(function)}: {problem}")
    return annotation


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", repr(function)))


def _is_bound(function: Any) -> bool:
    if type(function) is types.MethodType:
        return True
    descriptor, receiver = unbind(function)
    return bool(receiver) and not is_class(receiver[0]) and descriptor is not function


def _writes(annotation: UserAnnotation) -> bool:
    return any(item.in_place for item in annotation.inputs.values())


def _is_position(key: Any) -> bool:
    return (type(key) is int and key >= 0) or (type(key) is str and key.isidentifier())


def _positions_are_wrong(annotation: UserAnnotation) -> bool:
    keys: list[Any] = list(annotation.inputs)
    if annotation.output is not None and _relates(annotation.output):
        keys.append(annotation.output.relation.argument)
    return not all(map(_is_position, keys))


def _relates(output: Any) -> bool:
    kinds = (AliasOf, ElementOf, AttributeOf)
    return type(output) is Output and isinstance(output.relation, kinds)


def _output_is_wrong(annotation: UserAnnotation) -> bool:
    output = annotation.output
    if output is None:
        return False
    if not _relates(output):
        return True
    relation = output.relation
    return type(relation) is AttributeOf and not str(relation.name).isidentifier()


_PROBLEMS: Final[dict[str, Callable[[UserAnnotation], bool]]] = {
    "it is not callable": lambda a: not callable(a.function),
    "it is a bound method; annotate the function in its class": (
        lambda a: _is_bound(a.function)
    ),
    "it is a class written in Python; annotate its methods": (
        lambda a: isinstance(a.function, type) and bool(a.function.__flags__ & 1 << 9)
    ),
    "as_op_node and pure_closure exclude each other": (
        lambda a: a.as_op_node and a.pure_closure
    ),
    "inputs must map positions or names to Input": (
        lambda a: any(type(item) is not Input for item in a.inputs.values())
    ),
    "a pure closure changes nothing": lambda a: a.pure_closure and _writes(a),
    "the output must be an Output with a relation": _output_is_wrong,
    "a position must be a number from 0 on or the name of a parameter": (
        _positions_are_wrong
    ),
    "an operator tells by its tensors what its output is": (
        lambda a: a.as_op_node and a.output is not None
    ),
    "it says nothing; state what happens to an input or the output": (
        lambda a: not (a.as_op_node or a.pure_closure or a.inputs or a.output)
    ),
}


ENTRY_POINT_GROUP: Final = "magweld.annotations"

_CURRENT: Final[ContextVar[tuple[UserAnnotation, ...]]] = ContextVar(
    "magweld_annotations", default=()
)


@contextlib.contextmanager
def annotated(*items: UserAnnotation) -> Iterator[None]:
    """Put annotations in force for all callables that are traced inside of the block.

    Args:
        *items: What `annotate` has returned.
    """
    check(items)
    token = _CURRENT.set((*_CURRENT.get(), *items))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def in_force(given: Iterable[UserAnnotation]) -> tuple[UserAnnotation, ...]:
    """Return all annotations for a new trace, the later ones with precedence.

    Args:
        given: Those passed to `trace`.

    Raises:
        TypeError: Something else than annotations was passed.
    """
    items = tuple(given)
    check(items)
    return (*of_libraries(), *_CURRENT.get(), *items)


def check(items: Iterable[object]) -> None:
    """Check that these are annotations.

    Raises:
        TypeError: One is not.
    """
    for item in items:
        if type(item) is not UserAnnotation:
            kind = type(item).__name__
            raise TypeError(f"expected what annotate() returns, got {kind}")


@functools.cache
def of_libraries() -> tuple[UserAnnotation, ...]:
    """Return the annotations that installed libraries declare as entry points.

    A library names a tuple of annotations in the group `magweld.annotations`. One that
    cannot be loaded is left out with a warning.
    """
    found: list[UserAnnotation] = []
    for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        try:
            items = tuple(point.load())
            check(items)
        except Exception as error:
            warnings.warn(f"annotations of {point.value}: {error!r}", stacklevel=2)
        else:
            found += items
    return tuple(found)
