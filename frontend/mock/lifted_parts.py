"""Owns what a mock takes from lifted values: parts of new objects, by slot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import CellType
from typing import TYPE_CHECKING, Any

from magweld.frontend.expressions.expressions import Expression
from magweld.frontend.mock.rebuild import extend_dict
from magweld.frontend.state.lookup import instance_dict
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.recipes import Fill, Recipe
from magweld.frontend.state.steps import fill_namespace, replace_list

if TYPE_CHECKING:
    from magweld.frontend.lifting.state import Lifting


@dataclass(frozen=True)
class Lifted:
    """Takes the place of a part of a recipe: the value of an expression."""

    expression: Expression


def lift_recipe(lifting: Lifting, obj: Any, recipe: Recipe) -> Recipe:
    """Return a recipe whose parts are lifted where the object holds lifted values.

    Expressions in slots that the recipe does not name are pinned.
    """
    namespace = instance_dict(obj)
    spaces = [obj] if namespace is None else [obj, namespace]
    if not any(lifting.inside(space) for space in spaces):
        return recipe
    parts = recipe.parts
    if isinstance(obj, tuple):
        parts = _elements(lifting, obj, parts)
    elif type(obj) in (slice, range):
        parts = _fields(lifting, obj, parts)
    fills = tuple(lift_fill(lifting, obj, namespace, fill) for fill in recipe.fills)
    used = {
        part.expression
        for group in (parts, *(contents for _, contents in fills))
        for part in group
        if isinstance(part, Lifted)
    }
    for space in spaces:
        for _, expression in lifting.inside(space):
            if expression not in used:
                lifting.pin(expression)
    return replace(recipe, parts=parts, fills=fills)


def _part(lifting: Lifting, obj: Any, kind: Kind, key: Any, value: Any) -> Any:
    expression = lifting.at(obj, kind, key)
    return value if expression is None else Lifted(expression)


def _elements(lifting: Lifting, obj: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        _part(lifting, obj, Kind.INDEX, index, value)
        for index, value in enumerate(values)
    )


def _fields(lifting: Lifting, obj: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    names = ("start", "stop", "step")
    return tuple(
        _part(lifting, obj, Kind.SLOT, type(obj).__dict__[name], value)
        for name, value in zip(names, values, strict=True)
    )


def _pairs(lifting: Lifting, obj: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    lifted: list[Any] = []
    for key, value in zip(values[::2], values[1::2], strict=True):
        lifted += (key, _part(lifting, obj, Kind.ITEM, key, value))
    return tuple(lifted)


def lift_fill(lifting: Lifting, obj: Any, namespace: Any, fill: Fill) -> Fill:
    """Return a fill whose contents are lifted where the object holds lifted values."""
    function, contents = fill
    if function is replace_list:
        return function, _elements(lifting, obj, contents)
    if function is extend_dict:
        return function, _pairs(lifting, obj, contents)
    if function is fill_namespace:
        return function, _pairs(lifting, namespace, contents)
    if type(obj) is CellType:
        return function, (_part(lifting, obj, Kind.CELL, None, contents[0]),)
    return fill
