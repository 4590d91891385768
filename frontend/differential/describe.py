"""Owns descriptions: everything that is reachable from some objects, as data."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import torch

from magweld.frontend.differential.structure import (
    is_atom,
    is_library,
    view_of,
)
from magweld.frontend.operators.history import gradient_node
from magweld.frontend.state.contents import isinstance_exactly
from magweld.frontend.state.lookup import instance_dict
from magweld.frontend.state.natives import is_array
from magweld.frontend.state.values import exact, is_scalar
from magweld.storages import has_all_memory, storage_of

# Name of what differs where only elements do.
VALUES: Final = "values"


@dataclass(frozen=True)
class TensorData:
    """What is compared of one tensor.

    Attributes:
        form: Readable facts by name.
        values: A copy of its elements, None when a storage cannot be read.
    """

    form: dict[str, Any]
    values: torch.Tensor | None


def is_strided(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has memory of its own that can be copied."""
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
    if not plain or tensor.layout is not torch.strided:
        return False
    if tensor.is_meta or tensor.is_quantized or tensor.is_nested:
        return False
    return has_all_memory(tensor)


_HISTORY: Final = frozenset({"history", "requires_grad", "grad_fn", "is_leaf"})


def history(tensor: torch.Tensor) -> dict[str, Any]:
    """Return what autograd tells of a tensor.

    It does not tell it of some views whose base was written since.
    """
    try:
        return {
            "requires_grad": tensor.requires_grad,
            "grad_fn": gradient_node(tensor) is not None,
            "is_leaf": tensor.is_leaf,
        }
    except RuntimeError as error:
        return {"history": str(error)}


def tensor_data(tensor: torch.Tensor, storage: int, exact: bool) -> TensorData:
    """Describe a tensor.

    Args:
        storage: Number of its storage in the order of appearance.
        exact: Whether the place in the storage is compared too.
    """
    form = {
        "type": type(tensor).__name__,
        "dtype": tensor.dtype,
        "device": tensor.device,
        "shape": None if tensor.is_nested else tuple(tensor.shape),
        **history(tensor),
    }
    if not is_strided(tensor):
        return TensorData(form, None)
    form["strides"] = tensor.stride()
    form["storage"] = storage
    if exact:
        form["storage_offset"] = tensor.storage_offset()
    with torch.no_grad():
        values = tensor.detach().clone().resolve_conj().resolve_neg()
    return TensorData(form, values)


def array_data(array: Any, exact: bool) -> Any:
    """Describe an array of numpy, as a tensor where there is one of its dtype."""
    if array.dtype.hasobject:
        return array.dtype.str, array.shape
    try:
        # A copy: torch warns of memory that may not be written.
        tensor = torch.from_numpy(array.copy())
    except (TypeError, ValueError):
        return array.dtype.str, array.shape, array.tobytes()
    data = tensor_data(tensor, 0, exact)
    data.form["strides"] = array.strides
    return data


def difference(
    expected: TensorData, found: TensorData, exact: bool
) -> tuple[str, Any, Any] | None:
    """Return the first fact in which two tensors differ: name, expected, found."""
    untold = "history" in expected.form or "history" in found.form
    for name, value in expected.form.items():
        # Compiled results are no views of what was written, and tell their history.
        if untold and not exact and name in _HISTORY:
            continue
        if found.form.get(name) != value:
            return name, value, found.form.get(name)
    if expected.values is None or found.values is None:
        return None
    if _same_values(expected.values, found.values, exact):
        return None
    return VALUES, expected.values.flatten()[:8], found.values.flatten()[:8]


def _same_values(left: torch.Tensor, right: torch.Tensor, exact: bool) -> bool:
    if exact:
        return torch.equal(_bits(left), _bits(right))
    try:
        torch.testing.assert_close(left, right, equal_nan=True)
    except AssertionError:
        return False
    return True


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    # Not contiguous(): a single element keeps its stride, whatever that is.
    packed = tensor.flatten().clone(memory_format=torch.contiguous_format)
    return packed.view(torch.uint8)


# Iterators whose position can be looked at and put back.
POSITIONED: Final[frozenset[type]] = frozenset(
    type(iterator) for iterator in (iter([]), iter(()), iter(range(0)))
)


def position(iterator: Any) -> tuple[Any, int] | None:
    """Return what one of these iterates over, and how far it is; None at its end."""
    sequence, index = (*iterator.__reduce__()[1:], None)[:2]
    return None if index is None else (sequence[0], index)


class Item(NamedTuple):
    """One object of a description.

    Attributes:
        path: How the first visit reached it.
        kind: Its type, readable.
        data: What is compared of it by value.
        origin: Its number among the objects from before the call, None if it is new.
        parts: Names and numbers of the objects, or values of scalars, in it.
    """

    path: str
    kind: str
    data: Any
    origin: int | None
    parts: list[tuple[str, Any]]


class Ref(NamedTuple):
    """A part that is an object: its number in the description."""

    number: int


@dataclass
class Description:
    """Objects in the order of a walk that depends on nothing but their structure."""

    items: list[Item] = field(default_factory=list)


class Walk:
    """Describes what is reachable from roots.

    Args:
        origins: Numbers of the objects from before the call, by id.
        exact: Whether tensors are compared bit by bit later on.
    """

    def __init__(
        self, origins: Mapping[int, int] | None = None, exact: bool = True
    ) -> None:
        self.objects: list[Any] = []
        self._origins = origins or {}
        self._exact = exact
        self._numbers: dict[int, int] = {}
        self._paths: list[str] = []
        self._libraries: dict[type, bool] = {}
        self._storages: dict[int, int] = {}
        # What views of objects make for the purpose must keep its id.
        self._kept: list[Any] = []

    def describe(
        self, roots: Iterable[tuple[str, Any]], most: int = sys.maxsize
    ) -> Description:
        """Return the description of everything that the roots lead to.

        It ends early where that is more than `most` objects.
        """
        result = Description()
        starts = [(name, self._refer("", name, obj)) for name, obj in roots]
        result.items.append(Item("call", "", None, None, starts))
        done = 0
        while done < len(self.objects) <= most:
            result.items.append(self._item(done))
            done += 1
        return result

    def _refer(self, path: str, name: str, obj: Any) -> Any:
        number = self._numbers.get(id(obj))
        if number is not None:
            return Ref(number)
        if is_scalar(obj):
            return exact(obj)
        if is_atom(obj):
            return ("object", type(obj).__name__, id(obj))
        number = self._numbers[id(obj)] = len(self.objects)
        self.objects.append(obj)
        self._paths.append(join(path, name) if path else name)
        return Ref(number)

    def _is_library(self, kind: type) -> bool:
        known = self._libraries.get(kind)
        if known is None:
            known = self._libraries[kind] = is_library(kind)
        return known

    def _item(self, number: int) -> Item:
        obj, path = self.objects[number], self._paths[number]
        origin = self._origins.get(id(obj))
        kind = f"{type(obj).__module__}.{type(obj).__qualname__}"
        data, parts = self._look(obj)
        if not self._is_library(type(obj)):
            parts = [("__class__", type(obj)), *parts]
        self._kept.append(parts)
        joined = [(name, self._refer(path, name, part)) for name, part in parts]
        return Item(path, kind, data, origin, joined)

    def _look(self, obj: Any) -> tuple[Any, list[tuple[str, Any]]]:
        if is_array(obj):
            return array_data(obj, self._exact), []
        if type(obj) in POSITIONED:
            there = position(obj)
            parts = [] if there is None else [("sequence", there[0])]
            return None if there is None else there[1], parts
        if not isinstance_exactly(obj, torch.Tensor):
            view = view_of(obj)
            return view.data, view.parts
        storage = 0
        if type(obj) in (torch.Tensor, torch.nn.Parameter):
            if obj.layout is torch.strided:
                address = storage_of(obj)
                storage = self._storages.setdefault(address, len(self._storages))
        space = instance_dict(obj) or {}
        parts = [(name, value) for name, value in space.items()]
        if history(obj).get("is_leaf"):
            parts.append(("grad", obj.grad))
        return tensor_data(obj, storage, self._exact), parts


def join(path: str, name: str) -> str:
    """Return the path of a part as an expression."""
    return f"{path}{name}" if name.startswith("[") else f"{path}.{name}"


@dataclass(frozen=True)
class Difference:
    """The first difference between two descriptions.

    Attributes:
        path: Where it is.
        expected: What eager has there.
        found: What the hit has there.
    """

    path: str
    expected: str
    found: str

    @property
    def is_of_values(self) -> bool:
        """Whether two tensors differ in their elements only."""
        return self.path.endswith(f".{VALUES}")

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, found {self.found}"


def shown(description: Description, ref: Any) -> str:
    """Return a readable form of a part."""
    if isinstance(ref, Ref):
        item = description.items[ref.number + 1]
        return f"the {item.kind} that {item.path} is"
    return repr(ref[1]) if len(ref) == 2 else f"the {ref[1]} at {ref[2]:#x}"


def generator_states() -> list[tuple[str, Any]]:
    """Return the states of all random generators as roots of a description."""
    # As one value: 625 numbers would be described one by one.
    chosen = repr(random.getstate())
    result: list[tuple[str, Any]] = [
        ("torch.get_rng_state()", torch.get_rng_state()),
        ("random.getstate()", chosen),
    ]
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        _, keys, position, gauss, cached = numpy.random.get_state()
        numbers = (keys.tobytes(), int(position), int(gauss), float(cached))
        result.append(("numpy.random.get_state()", numbers))
    return result
