"""Owns the inputs that an artifact takes, and the check of a call against them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

        Args:
            value: The argument.
            device: Where it has to be.
        """
        if not isinstance(value, Tensor):
            return f"is a {type(value).__name__}, not a tensor"
        if tuple(value.shape) != self.shape:
            return f"has shape {list(value.shape)}, expected {list(self.shape)}"
        if value.dtype != self.dtype:
            return f"has dtype {value.dtype}, expected {self.dtype}"
        if value.device != device or value.layout is not torch.strided:
            found = f"is on {value.device} with layout {value.layout}"
            return f"{found}, expected {device} and {torch.strided}"
        if value.is_conj() or value.is_neg():
            return "is a lazily negated or conjugated view"
        if self._visible(value.stride()) != self._visible(self.stride):
            return f"has strides {list(value.stride())}, expected {list(self.stride)}"
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
        same = type(value) is type(self.value) and value == self.value
        return "" if same else f"is {value!r}, compiled for {self.value!r}"

    def to_json(self) -> Any:
        """Return it as JSON data."""
        return {"constant": self.value}

    @staticmethod
    def from_json(data: Any) -> ConstantInput:
        """Rebuild it."""
        return ConstantInput(data["constant"])


Input = TensorInput | ConstantInput


@dataclass(frozen=True)
class Signature:
    """Positional and keyword arguments of an artifact."""

    positional: tuple[Input, ...]
    keywords: tuple[tuple[str, Input], ...]

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
        for index, (value, expected) in enumerate(zip(values, self.all, strict=True)):
            problem = expected.difference(value, device)
            if problem:
                raise InputMismatchError(index, f"argument {index} {problem}")
        return [value for value in values if isinstance(value, Tensor)]

    @property
    def all(self) -> tuple[Input, ...]:
        """Every input, keywords last."""
        return (*self.positional, *(entry for _, entry in self.keywords))

    def to_json(self) -> Any:
        """Return it as JSON data."""
        return {
            "positional": [entry.to_json() for entry in self.positional],
            "keywords": [[name, entry.to_json()] for name, entry in self.keywords],
        }

    @staticmethod
    def from_json(data: Any) -> Signature:
        """Rebuild it."""
        return Signature(
            tuple(map(_from_json, data["positional"])),
            tuple((name, _from_json(entry)) for name, entry in data["keywords"]),
        )


def _input(where: str, value: object) -> Input:
    if isinstance(value, Tensor):
        return TensorInput.of(value)
    if type(value) in PLAIN:
        return ConstantInput(value)
    raise INPUT_KIND.at(f"{where} of type {type(value).__name__}")


def _from_json(data: Any) -> Input:
    kind = ConstantInput if "constant" in data else TensorInput
    return kind.from_json(data)
