"""Owns recipes of native objects: iterators, views, buffers, partial functions."""

from __future__ import annotations

import array
import functools
import gc
import itertools
import operator
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.mock.recipe import Recipe
from magweld.frontend.state.natives import is_array
from magweld.frontend.state.steps import fill_namespace


def native_recipe(obj: Any) -> Recipe | None:
    """Return the recipe of an object of a native class, None if there is none."""
    recipe = _BY_TYPE.get(type(obj))
    if recipe is not None:
        return recipe(obj)
    return _array(obj) if is_array(obj) else None


def _reduced(obj: Any) -> Recipe:
    """An iterator tells by `__reduce__` what it goes over and where it stands."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        function, args, *state = obj.__reduce__()

    finals = tuple((_set_state, (part,)) for part in state if part is not None)
    return Recipe(function, args, finals=finals)


def _set_state(iterator: Any, state: list[Any]) -> None:
    iterator.__setstate__(*state)


def _view(name: str) -> Callable[[Any], Recipe]:
    def recipe(obj: Any) -> Recipe:
        return Recipe(getattr(dict, name), (gc.get_referents(obj)[0],))

    return recipe


def _namespace(obj: types.SimpleNamespace) -> Recipe:
    pairs = tuple(part for item in vars(obj).items() for part in item)
    fills = ((fill_namespace, pairs),)
    return Recipe(types.SimpleNamespace, late=True, fills=fills)


def _proxy(obj: types.MappingProxyType[Any, Any]) -> Recipe:
    return Recipe(types.MappingProxyType, (gc.get_referents(obj)[0],))


def _copied(obj: Any) -> Recipe:
    # The record keeps a copy of its own; a hit copies that.
    return Recipe(functools.partial(type(obj).__getitem__, obj[:], slice(None)))


def _array(obj: Any) -> Recipe:
    base = obj.base
    # Nobody else may see the memory: the view, the variable here, the argument below.
    shared = base is not None and (
        not is_array(base) or base.base is not None or sys.getrefcount(base) > 3
    )
    if shared or not obj.flags.writeable or obj.dtype.hasobject:
        raise StopRecordingError("result-object", "an array that borrows memory")
    return Recipe(functools.partial(type(obj).copy, obj.copy("K"), "K"))


_EMPTY: Final[dict[int, int]] = {}
_SOURCES: Final[tuple[Any, ...]] = ([], (), "", b"", bytearray(), range(0))
_REDUCED: Final[tuple[type, ...]] = (
    *(type(iter(source)) for source in _SOURCES),
    type(iter(range(1 << 70))),
    type(reversed([])),
    enumerate,
    filter,
    map,
    reversed,
    zip,
    itertools.accumulate,
    itertools.chain,
    itertools.combinations,
    itertools.combinations_with_replacement,
    itertools.compress,
    itertools.count,
    itertools.cycle,
    itertools.dropwhile,
    itertools.filterfalse,
    itertools.islice,
    itertools.permutations,
    itertools.product,
    itertools.repeat,
    itertools.starmap,
    itertools.takewhile,
    itertools.zip_longest,
    operator.attrgetter,
    operator.itemgetter,
    operator.methodcaller,
)

_BY_TYPE: Final[dict[type, Callable[[Any], Recipe]]] = {
    **dict.fromkeys(_REDUCED, _reduced),
    **{type(getattr(_EMPTY, n)()): _view(n) for n in ("keys", "values", "items")},
    array.array: _copied,
    bytearray: _copied,
    types.MappingProxyType: _proxy,
    types.SimpleNamespace: _namespace,
}
