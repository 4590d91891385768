"""Owns the names of the modules in whose methods an operator runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import CellType
from typing import Any

from torch import nn

from magweld.frontend.monitor.observer import Observer


class ModuleNames:
    """Names of modules below the outermost one that runs, as `named_modules` has them.

    They are read from the objects themselves: a class of the user may have an
    `__getattr__` or a `named_modules` of its own, which would be part of the run.
    """

    def __init__(self) -> None:
        self._root: int | None = None
        self._names: dict[int, str] = {}

    def stack(self, observers: Sequence[Observer]) -> dict[str, tuple[str, str]]:
        """Return the modules whose methods run, the outermost first.

        The form is that of `nn_module_stack` in exported programs: (name, class) by
        name. The outermost module has no name; one that is not below it is left out.
        """
        found: dict[str, tuple[str, str]] = {}
        for observer in observers:
            module = _first_argument(observer)
            if module is None:
                continue
            if self._root is None:
                self._root, self._names = id(module), dict(_named(module))
            name = self._names.get(id(module))
            if name is not None:
                kind = type(module)
                found[name] = (name, f"{kind.__module__}.{kind.__qualname__}")
        return found


def _first_argument(observer: Observer) -> nn.Module | None:
    """Return what a frame got first, if that is a module and still there."""
    code = observer.code
    if observer.frame is None or not code.co_argcount:
        return None
    value = observer.session.reader.slot(observer.frame, 0)
    if type(value) is CellType:
        try:
            value = value.cell_contents
        except ValueError:
            return None  # it was deleted
    return value if issubclass(type(value), nn.Module) else None


def _named(root: nn.Module) -> Iterator[tuple[int, str]]:
    """Yield the modules below one and itself, by identity; the first name counts."""
    seen: set[int] = set()
    waiting: list[tuple[Any, str]] = [(root, "")]
    while waiting:
        module, name = waiting.pop()
        if id(module) in seen or not issubclass(type(module), nn.Module):
            continue
        seen.add(id(module))
        yield id(module), name
        children = object.__getattribute__(module, "__dict__").get("_modules")
        if type(children) is dict:
            below = f"{name}." if name else ""
            waiting += [
                (one, f"{below}{key}") for key, one in [*children.items()][::-1]
            ]
