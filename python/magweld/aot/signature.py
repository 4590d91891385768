"""Owns the inputs that an artifact takes, and the check of a call against them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import torch
from torch import Tensor

from magweld.aot.errors import INPUT_KIND
from magweld.aot.nested import (
    Constant,
    Nested,
    built,
    from_json,
    items_of,
    leaves_of,
    mismatch,
    nested_of,
    to_json,
)
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


Input: TypeAlias = Nested[TensorInput]


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
            problem = _difference(expected, value, device)
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

        def filled(entry: Input) -> Any:
            return built(entry, lambda _: next(numbered))

        # A list: the end of the tensors must not end a generator.
        args = tuple([filled(entry) for entry in self.positional])
        return args, {name: filled(entry) for name, entry in self.keywords}

    @cached_property
    def takes_tensors(self) -> bool:
        """Whether it takes positional tensors alone, which may be equal."""
        plain = all(isinstance(entry, TensorInput) for entry in self.positional)
        return plain and not self.keywords and not self.distinct

    @property
    def leaves(self) -> list[tuple[str, TensorInput]]:
        """Every tensor with a name such as "x" or "0.1.weights"."""
        named = [*((str(n), x) for n, x in enumerate(self.positional)), *self.keywords]
        return [leaf for name, entry in named for leaf in leaves_of(entry, name)]

    @property
    def _all(self) -> tuple[Input, ...]:
        return (*self.positional, *(entry for _, entry in self.keywords))

    def to_json(self) -> Any:
        """Return it as JSON data."""
        return {
            "positional": [_to_json(entry) for entry in self.positional],
            "keywords": [[name, _to_json(entry)] for name, entry in self.keywords],
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
    for _, item in items_of(value):
        yield from tensors_in(item)


def _difference(entry: Input, value: object, device: torch.device) -> str:
    """Say how a value differs from what is expected; "" if it does not."""
    if isinstance(entry, TensorInput):
        return entry.difference(value, device)
    problem = mismatch(entry, value)
    if problem or isinstance(entry, Constant):
        return problem
    pairs = zip(items_of(value), entry.items, strict=True)
    for (key, item), (_, expected) in pairs:
        problem = _difference(expected, item, device)
        if problem:
            return f"[{key!r}]{problem}"
    return ""


def _input(where: str, value: object) -> Input:
    return nested_of(value, _leaf, _refuse, where)


def _leaf(value: object) -> TensorInput | None:
    return TensorInput.of(value) if isinstance(value, Tensor) else None


def _refuse(where: str, kind: str) -> Exception:
    return INPUT_KIND.at(f"{where} of type {kind}")


def _to_json(entry: Input) -> Any:
    if isinstance(entry, TensorInput):
        return entry.to_json()
    kind, content = to_json(entry, _to_json)
    return {kind: content}


def _from_json(data: Any) -> Input:
    if "shape" in data:
        return TensorInput.from_json(data)
    ((kind, content),) = data.items()
    return from_json(kind, content, _from_json)
