"""Owns snapshots: the state that a call can reach, kept and put back."""

from __future__ import annotations

import contextvars
import copy
import functools
import operator
import types
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import torch

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.differential.describe import (
    POSITIONED,
    history,
    is_strided,
    position,
)
from magweld.frontend.differential.outside import Written
from magweld.frontend.differential.structure import (
    code_names,
    is_consumable,
    is_library,
    slots_of,
)
from magweld.frontend.operators.history import gradient_node
from magweld.frontend.operators.put_back import save_generators
from magweld.frontend.operators.torch_state import torch_state
from magweld.frontend.state.contents import (
    base_class,
    builtin_base,
    cell_value,
    elements,
    isinstance_exactly,
    keys_of,
    slot_value,
)
from magweld.frontend.state.lookup import instance_dict
from magweld.frontend.state.mro import ABSENT, class_dict, is_class, is_immutable
from magweld.frontend.state.natives import is_array, is_buffer
from magweld.frontend.state.steps import discard_attribute
from magweld.storages import storage_of

Restore = Callable[[], None]


class CannotRestoreError(Exception):
    """State that no snapshot can put back; the message says which."""


class Snapshot:
    """The content of objects, and the states of all random generators."""

    def __init__(self, objects: Iterable[Any], written: Iterable[Written] = ()) -> None:
        """Keep the content of objects.

        Args:
            objects: All that a call can reach.
            written: What the call may write beside these.

        Raises:
            CannotRestoreError: One of them is an iterator or a tensor without memory
                of its own.
        """
        self._modes = torch_state()
        grad_mode = functools.partial(
            torch._C._set_grad_enabled, torch.is_grad_enabled()
        )
        self._restores: list[Restore] = [save_generators(), grad_mode]
        self._seen: set[int] = set()
        self._tensors: list[tuple[torch.Tensor, Any]] = []
        self._sets: list[tuple[Any, list[Any]]] = []
        self._positions: list[tuple[Any, int]] = []
        self._caches: list[tuple[Any, Any]] = []
        reached: set[int] = set()
        for obj in objects:
            reached.add(id(obj))
            self._keep(obj)
        for item in written:
            if id(item.obj) not in reached | self._seen:
                self._keep_written(item)

    def restore(self) -> None:
        """Put everything back.

        Raises:
            CannotRestoreError: A tensor has got other memory or another history, an
                iterator has come to its end, a function with a cache was called, a mode
                of torch has changed, or a set had an order that comes from what was
                removed from it.
        """
        if torch_state()[1:] != self._modes[1:]:
            raise CannotRestoreError("a mode of torch")
        if any(function.cache_info() != info for function, info in self._caches):
            raise CannotRestoreError("a function with a cache")
        if any(position(iterator) is None for iterator, _ in self._positions):
            raise CannotRestoreError("an iterator at its end")
        for obj, before in self._sets:
            if not _same(before, elements(obj)) and list(set(before)) != before:
                raise CannotRestoreError("a set in an order of its own")
        for tensor, identity in self._tensors:
            if _identity(tensor) != identity:
                raise CannotRestoreError("a tensor with another history or memory")
        for iterator, index in self._positions:
            iterator.__setstate__(index)
        for restore in self._restores:
            restore()

    def _keep(self, obj: Any) -> None:
        if type(obj) in POSITIONED:
            there = position(obj)
            if there is None and operator.length_hint(obj):
                # From 3.12 on it knows what is left, and cannot be put back.
                raise CannotRestoreError("an iterator over a range")
            self._positions += [] if there is None else [(obj, there[1])]
        elif is_consumable(obj):
            raise CannotRestoreError(f"an iterator, {type(obj).__qualname__}")
        elif isinstance_exactly(obj, torch.Tensor):
            self._keep_tensor(obj)
        elif type(obj) is functools._lru_cache_wrapper:
            self._keep_cache(obj)
        elif type(obj) in _VALUES:
            self._restores.append(_VALUES[type(obj)](obj))
        elif type(obj) is types.FunctionType:
            self._keep_globals(obj)
        elif builtin_base(obj) is set:
            self._sets.append((obj, elements(obj)))
        content = _buffer if is_buffer(obj) else _CONTENT.get(builtin_base(obj))
        if content is not None:
            self._restores.append(content(obj))
        self._keep_attributes(obj)

    def _keep_written(self, item: Written) -> None:
        if item.key is ABSENT:
            self._keep(item.obj)
        else:
            self._restores.append(_entries(item.obj, [item.key]))

    def _keep_attributes(self, obj: Any) -> None:
        if is_class(obj) and not is_immutable(obj):
            self._restores.append(_class(obj))
        space = None if is_class(obj) else instance_dict(obj)
        if space is not None and id(space) not in self._seen:
            self._seen.add(id(space))
            self._restores.append(_dict(space))
        if not is_class(obj):
            for _, descriptor in slots_of(obj):
                self._restores.append(_slot(obj, descriptor))

    def _keep_globals(self, function: types.FunctionType) -> None:
        if is_library(function):
            return
        space = function.__globals__
        # What has warned there warns again.
        names = [*code_names(function.__code__), "__warningregistry__"]
        self._restores.append(_entries(space, names))
        registry = space.get("__warningregistry__")
        if type(registry) is dict and id(registry) not in self._seen:
            self._seen.add(id(registry))
            self._restores.append(_dict(registry))

    def _keep_cache(self, function: Any) -> None:
        inner = (instance_dict(function) or {}).get("__wrapped__")
        if type(inner) is not types.FunctionType or not is_library(inner):
            self._caches.append((function, function.cache_info()))

    def _keep_tensor(self, tensor: torch.Tensor) -> None:
        if "is_leaf" not in history(tensor):
            raise CannotRestoreError("a view that autograd refuses")
        if not is_strided(tensor):
            raise CannotRestoreError(f"a {tensor.layout} {type(tensor).__qualname__}")
        self._tensors.append((tensor, _identity(tensor)))
        if not tensor.is_inference():
            self._restores.append(_version(tensor))
        if tensor.is_leaf:
            self._restores.append(_grad(tensor))
        if storage_of(tensor) not in self._seen:
            self._seen.add(storage_of(tensor))
            self._restores.append(_storage(tensor))


def _identity(tensor: torch.Tensor) -> tuple[Any, ...]:
    form = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.requires_grad)
    return (*form, _history(tensor))


def _history(tensor: torch.Tensor) -> int:
    try:
        node = gradient_node(tensor)
    except RuntimeError:
        return 0  # the base of the view was written since
    return 0 if node is None else id(node)


def _storage(tensor: torch.Tensor) -> Restore:
    storage = tensor.untyped_storage()
    before = storage.clone()  # type: ignore[no-untyped-call]

    def restore() -> None:
        # A write to the storage leaves the version of the tensors alone.
        storage.copy_(before)

    return restore


def _version(tensor: torch.Tensor) -> Restore:
    before = tensor._version

    def restore() -> None:
        if tensor._version != before:
            torch._C._autograd._unsafe_set_version_counter((tensor,), (before,))

    return restore


def _grad(tensor: torch.Tensor) -> Restore:
    before = tensor.grad

    def restore() -> None:
        if tensor.grad is not before:
            tensor.grad = before

    return restore


def _value(
    get: Callable[[], Any], put: Callable[[Any], object], drop: Callable[[], object]
) -> Restore:
    """Return what puts a single value back; ABSENT stands for none."""
    before = get()

    def restore() -> None:
        now = get()
        if before is ABSENT and now is not ABSENT:
            drop()
        elif now is not before:
            put(before)

    return restore


def _cell(cell: types.CellType) -> Restore:
    def put(value: Any) -> None:
        cell.cell_contents = value

    def drop() -> None:
        del cell.cell_contents

    return _value(lambda: cell_value(cell), put, drop)


def _context(variable: contextvars.ContextVar[Any]) -> Restore:
    # Nothing takes a value away without the token that setting it has given.
    return _value(lambda: variable.get(ABSENT), variable.set, lambda: None)


def _buffer(obj: Any) -> Restore:
    """Return what puts the numbers of an array back."""
    before = copy.copy(obj)

    def restore() -> None:
        if not is_array(obj):
            obj[:] = before
        elif obj.flags.writeable:
            obj[...] = before

    return restore


_VALUES: dict[type, Callable[[Any], Restore]] = {
    types.CellType: _cell,
    contextvars.ContextVar: _context,
}


def _slot(obj: Any, descriptor: Any) -> Restore:
    return _value(
        lambda: slot_value(obj, descriptor),
        lambda value: descriptor.__set__(obj, value),
        lambda: descriptor.__delete__(obj),
    )


def _class(cls: Any) -> Restore:
    before = dict(class_dict(cls))

    def restore() -> None:
        now = dict(class_dict(cls))
        for name in (*before, *now):
            if name not in before:
                discard_attribute(cls, name)
            elif now.get(name, ABSENT) is not before[name]:
                type.__setattr__(cls, name, before[name])

    return restore


def _entries(space: dict[str, Any], names: list[Any]) -> Restore:
    before = {name: space.get(name, ABSENT) for name in names}

    def restore() -> None:
        for name, value in before.items():
            if value is ABSENT:
                space.pop(name, None)
            elif space.get(name, ABSENT) is not value:
                space[name] = value

    return restore


def _same(left: list[Any], right: list[Any]) -> bool:
    return len(left) == len(right) and all(map(operator.is_, left, right))


def _entries_of(obj: Any) -> tuple[list[Any], list[Any]]:
    try:
        return keys_of(obj), elements(obj)
    except StopRecordingError as stop:
        raise CannotRestoreError(str(stop)) from stop


def _dict(obj: Any) -> Restore:
    owner = base_class(obj)
    keys, values = _entries_of(obj)

    def restore() -> None:
        keys_now, values_now = _entries_of(obj)
        if _same(keys, keys_now) and _same(values, values_now):
            return
        owner.clear(obj)
        for key, value in zip(keys, values, strict=True):
            owner.__setitem__(obj, key, value)

    return restore


def _refilled(obj: Any) -> Restore:
    """Return what puts the members of a list, deque or set back, in their order."""
    base = builtin_base(obj)
    assert base is not None, "a container is expected"
    before = elements(obj)

    def restore() -> None:
        if not _same(before, elements(obj)):
            base.clear(obj)
            _FILL[base](obj, before)

    return restore


_FILL: dict[Any, Callable[[Any, Any], None]] = {
    list: list.extend,
    deque: deque.extend,
    set: set.update,
}
_CONTENT: dict[Any, Callable[[Any], Restore]] = {
    dict: _dict,
    **dict.fromkeys(_FILL, _refilled),
}
