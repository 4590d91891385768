"""Owns the inputs that an artifact takes, and the check of a call against them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor

from magweld.aot.errors import INPUT_KIND
from magweld.aot.template import PLAIN
from magweld.runtime.errors import InputMismatchError


@dataclass(frozen=True)
class TensorInput:
    """A tensor that an artifact takes."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    @staticmethod
    def of(tensor: Tensor) -> TensorInput:
        """Describe a tensor."""
        return TensorInput(tuple(tensor.shape), tensor.stride(), tensor.dtype)

    def difference(self, value: object, device: torch.device) -> str:
        """Say how a value differs from what is expected; "" if it does not.

        The words follow those that name the value.

        Args:
            value: The argument.
            device: Where it has to be.
        """
        if not isinstance(value, Tensor):
            return f" is a {type(value).__name__}, not a tensor"
        if tuple(value.shape) != self.shape:
            return f" has shape {list(value.shape)}, expected {list(self.shape)}"
        if value.dtype != self.dtype:
            return f" has dtype {value.dtype}, expected {self.dtype}"
        if value.device != device or value.layout is not torch.strided:
            found = f" is on {value.device} with layout {value.layout}"
            return f"{found}, expected {device} and {torch.strided}"
        if value.is_conj() or value.is_neg():
            return " is a lazily negated or conjugated view"
        if self._visible(value.stride()) != self._visible(self.stride):
            return f" has strides {list(value.stride())}, expected {list(self.stride)}"
        return ""

    def _visible(self, stride: Sequence[int]) -> list[int]:
        """Leave out the strides of axes with one element: they mean nothing."""
        pairs = zip(self.shape, stride, strict=True)
        return [s for extent, s in pairs if extent != 1]

    def to_json(self) -> Any:
        """Return it as JSON data."""
        dtype = str(self.dtype).removeprefix("torch.")
        return {"shape": self.shape, "stride": self.stride, "dtype": dtype}

    @staticmethod
    def from_json(data: Any) -> TensorInput:
        """Rebuild it."""
        dtype = getattr(torch, data["dtype"])
        return TensorInput(tuple(data["shape"]), tuple(data["stride"]), dtype)


@dataclass(frozen=True)
class ConstantInput:
    """A plain value that was compiled into an artifact."""

    value: Any

    def difference(self, value: object, device: torch.device) -> str:
        """Say how a value differs from the constant; "" if it does not."""
        # By their text: zeros differ in sign, and a NaN is as good as another.
        same = type(value) is type(self.value) and repr(value) == repr(self.value)
        return "" if same else f" is {value!r}, compiled for {self.value!r}"

    def to_json(self) -> Any:
        """Return it as JSON data."""
        return {"constant": self.value}


@dataclass(frozen=True)
class SequenceInput:
    """A tuple or a list of inputs.

    Attributes:
        kind: "tuple" or "list".
        items: Its inputs.
    """

    kind: str
    items: tuple[Input, ...]

    def difference(self, value: object, device: torch.device) -> str:
        """Say how a value differs from what is expected; "" if it does not."""
        if type(value) is not _SEQUENCES[self.kind]:
            return f" is a {type(value).__name__}, not a {self.kind}"
        assert isinstance(value, tuple | list), "the kinds are tuple and list"
        if len(value) != len(self.items):
            return f" has {len(value)} items, expected {len(self.items)}"
        return _first_difference(enumerate(value), self.items, device)

    def to_json(self) -> Any:
        """Return it as JSON data."""
        return {self.kind: [item.to_json() for item in self.items]}


@dataclass(frozen=True)
class DictInput:
    """A dict of inputs with plain keys, in the order of the example."""

    items: tuple[tuple[Any, Input], ...]

    def difference(self, value: object, device: torch.device) -> str:
        """Say how a value differs from what is expected; "" if it does not."""
        if type(value) is not dict:
            return f" is a {type(value).__name__}, not a dict"
        # The program may have gone through the dict in its order.
        names = [key for key, _ in self.items]
        if list(map(repr, value)) != list(map(repr, names)):
            return f" has keys {list(value)}, in this order, expected {names}"
        expected = (entry for _, entry in self.items)
        return _first_difference(value.items(), expected, device)

    def to_json(self) -> Any:
        """Return it as JSON data."""
        return {"dict": [[key, entry.to_json()] for key, entry in self.items]}


Input = TensorInput | ConstantInput | SequenceInput | DictInput

_SEQUENCES: dict[str, type[tuple[Any, ...] | list[Any]]] = {
    "tuple": tuple,
    "list": list,
}


@dataclass(frozen=True)
class Signature:
    """Positional and keyword arguments of an artifact.

    Its tensors are counted in the order of the arguments, keywords last, and inside of
    tuples, lists and dicts in their order.

    Attributes:
        positional: The positional ones.
        keywords: The keyword ones, by name.
        distinct: Whether no tensor may be passed twice: the program asks for that.
    """

    positional: tuple[Input, ...]
    keywords: tuple[tuple[str, Input], ...]
    distinct: bool = False

    @staticmethod
    def of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Signature:
        """Describe the arguments of a call.

        Raises:
            UnsupportedError: `artifact-input`.
        """
        positional = tuple(_input(f"input {i}", x) for i, x in enumerate(args))
        keywords = tuple((name, _input(name, x)) for name, x in kwargs.items())
        return Signature(positional, keywords)

    def tensors(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], device: torch.device
    ) -> list[Tensor]:
        """Return the tensors of a call in the order of the signature.

        Args:
            args: Positional arguments.
            kwargs: Keyword arguments.
            device: Where tensors have to be.

        Raises:
            InputMismatchError: The arguments are not those that were compiled for.
        """
        names = [name for name, _ in self.keywords]
        if len(args) != len(self.positional) or set(kwargs) != set(names):
            raise InputMismatchError(
                -1,
                f"{len(args)} positional arguments and {sorted(kwargs)}, expected "
                f"{len(self.positional)} and {sorted(names)}",
            )
        values = [*args, *(kwargs[name] for name in names)]
        for index, (value, expected) in enumerate(zip(values, self._all, strict=True)):
            problem = expected.difference(value, device)
            if problem:
                raise InputMismatchError(index, f"argument {index}{problem}")
        tensors = list(tensors_in(values))
        if self.distinct and len(set(map(id, tensors))) < len(tensors):
            raise InputMismatchError(
                -1,
                "one tensor is passed twice, and the program asks which are the same",
            )
        return tensors

    def arguments(
        self, tensors: Iterable[Tensor]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call that passes some tensors, in order."""
        numbered = iter(tensors)
        args = tuple(_filled(entry, numbered) for entry in self.positional)
        return args, {name: _filled(entry, numbered) for name, entry in self.keywords}

    @cached_property
    def takes_tensors(self) -> bool:
        """Whether it takes positional tensors alone, which may be equal."""
        plain = all(isinstance(entry, TensorInput) for entry in self.positional)
        return plain and not self.keywords and not self.distinct

    @property
    def leaves(self) -> list[tuple[str, TensorInput]]:
        """Every tensor with a name such as "x" or "0.1.weights"."""
        named = [*((str(n), x) for n, x in enumerate(self.positional)), *self.keywords]
        return [leaf for name, entry in named for leaf in _leaves(name, entry)]

    @property
    def _all(self) -> tuple[Input, ...]:
        return (*self.positional, *(entry for _, entry in self.keywords))

    def to_json(self) -> Any:
        """Return it as JSON data."""
        return {
            "positional": [entry.to_json() for entry in self.positional],
            "keywords": [[name, entry.to_json()] for name, entry in self.keywords],
            "distinct": self.distinct,
        }

    @staticmethod
    def from_json(data: Any) -> Signature:
        """Rebuild it."""
        return Signature(
            tuple(map(_from_json, data["positional"])),
            tuple((name, _from_json(entry)) for name, entry in data["keywords"]),
            bool(data["distinct"]),
        )


def tensors_in(value: object) -> Iterator[Tensor]:
    """Yield the tensors of a value and of tuples, lists and dicts in it, in order."""
    if isinstance(value, Tensor):
        yield value
    elif type(value) in (tuple, list):
        for item in cast("Iterable[object]", value):
            yield from tensors_in(item)
    elif type(value) is dict:
        yield from tensors_in(list(value.values()))


def _first_difference(
    found: Iterable[tuple[Any, Any]], expected: Iterable[Input], device: torch.device
) -> str:
    for (key, value), entry in zip(found, expected, strict=True):
        problem = entry.difference(value, device)
        if problem:
            return f"[{key!r}]{problem}"
    return ""


def _input(where: str, value: object) -> Input:
    if isinstance(value, Tensor):
        return TensorInput.of(value)
    kind = type(value)
    if kind in PLAIN:
        return ConstantInput(value)
    if isinstance(value, tuple | list) and kind in _SEQUENCES.values():
        items = (_input(f"{where}[{n}]", item) for n, item in enumerate(value))
        return SequenceInput(kind.__name__, tuple(items))
    if (
        isinstance(value, dict)
        and kind is dict
        and all(type(k) in PLAIN for k in value)
    ):
        pairs = ((k, _input(f"{where}[{k!r}]", item)) for k, item in value.items())
        return DictInput(tuple(pairs))
    raise INPUT_KIND.at(f"{where} of type {kind.__name__}")


def _filled(entry: Input, tensors: Iterator[Tensor]) -> Any:
    match entry:
        case TensorInput():
            return next(tensors)
        case ConstantInput():
            return entry.value
        case SequenceInput():
            items = [_filled(item, tensors) for item in entry.items]
            return tuple(items) if entry.kind == "tuple" else items
        case DictInput():
            return {key: _filled(item, tensors) for key, item in entry.items}


def _leaves(name: str, entry: Input) -> Iterator[tuple[str, TensorInput]]:
    pairs: Iterable[tuple[Any, Input]] = ()
    match entry:
        case TensorInput():
            yield name, entry
        case SequenceInput():
            pairs = enumerate(entry.items)
        case DictInput():
            pairs = entry.items
    for key, item in pairs:
        yield from _leaves(f"{name}.{key}", item)


def _from_json(data: Any) -> Input:
    if "shape" in data:
        return TensorInput.from_json(data)
    ((kind, content),) = data.items()
    if kind == "constant":
        return ConstantInput(content)
    if kind == "dict":
        return DictInput(tuple((key, _from_json(item)) for key, item in content))
    kind = _SEQUENCES[kind].__name__
    return SequenceInput(kind, tuple(map(_from_json, content)))
