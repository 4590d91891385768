"""Owns how a program's result is put together from tensors and constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from magweld.aot.errors import OUTPUT_KIND, ArtifactError

PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Tensors:
    """The tensors of one call that its result may hold.

    Attributes:
        outputs: What the graph returned.
        inputs: Tensors that the caller passed.
        state: Tensors of the artifact.
    """

    outputs: Sequence[Tensor]
    inputs: Sequence[Tensor]
    state: Sequence[Tensor]


class Template(Protocol):
    """A part of a result."""

    def build(self, tensors: Tensors) -> Any:
        """Return the part for one call."""

    def to_json(self) -> Any:
        """Return it as JSON data, for `template_from_json`."""


@dataclass(frozen=True)
class TensorPart:
    """A tensor of the call.

    Attributes:
        source: "outputs", "inputs" or "state".
        index: Which one.
    """

    source: str
    index: int

    def build(self, tensors: Tensors) -> Any:
        """Return the tensor."""
        return getattr(tensors, self.source)[self.index]

    def to_json(self) -> Any:
        """Return it as JSON data."""
        return ["tensor", self.source, self.index]


@dataclass(frozen=True)
class ConstantPart:
    """A plain constant."""

    value: Any

    def build(self, tensors: Tensors) -> Any:
        """Return the constant."""
        return self.value

    def to_json(self) -> Any:
        """Return it as JSON data."""
        return ["constant", self.value]


@dataclass(frozen=True)
class SequencePart:
    """A tuple or a list.

    Attributes:
        kind: "tuple" or "list".
        items: Its parts.
    """

    kind: str
    items: tuple[Template, ...]

    def build(self, tensors: Tensors) -> Any:
        """Return a new tuple or list."""
        items = [item.build(tensors) for item in self.items]
        return tuple(items) if self.kind == "tuple" else items

    def to_json(self) -> Any:
        """Return it as JSON data."""
        return [self.kind, [item.to_json() for item in self.items]]


@dataclass(frozen=True)
class DictPart:
    """A dict with plain keys."""

    items: tuple[tuple[Any, Template], ...]

    def build(self, tensors: Tensors) -> Any:
        """Return a new dict."""
        return {key: item.build(tensors) for key, item in self.items}

    def to_json(self) -> Any:
        """Return it as JSON data."""
        return ["dict", [[key, item.to_json()] for key, item in self.items]]


def template_of(result: Any, tensors: Tensors) -> Template:
    """Return the template of a result that was made of certain tensors.

    Raises:
        UnsupportedError: `artifact-output`.
    """
    kind = type(result)
    if isinstance(result, Tensor):
        return _tensor_part(result, tensors)
    if kind in PLAIN:
        return ConstantPart(result)
    if kind in (tuple, list):
        items = tuple(template_of(item, tensors) for item in result)
        return SequencePart(kind.__name__, items)
    if kind is dict and all(type(key) in PLAIN for key in result):
        pairs = ((key, template_of(item, tensors)) for key, item in result.items())
        return DictPart(tuple(pairs))
    raise OUTPUT_KIND.at(f"a result of type {kind.__name__}")


def _tensor_part(tensor: Tensor, tensors: Tensors) -> TensorPart:
    for source in ("outputs", "inputs", "state"):
        for index, candidate in enumerate(getattr(tensors, source)):
            if candidate is tensor:
                return TensorPart(source, index)
    raise OUTPUT_KIND.at("a tensor that the graph neither takes nor makes")


def template_from_json(data: Any) -> Template:
    """Rebuild a template from its JSON data.

    Raises:
        ArtifactError: It is none.
    """
    try:
        kind, *fields = data
        return _READERS[kind](*fields)
    except (TypeError, ValueError, KeyError) as error:
        raise ArtifactError(
            "artifact-damaged", f"no result template: {error}"
        ) from error


def _sequence(kind: str) -> Callable[[Any], Template]:
    return lambda items: SequencePart(kind, tuple(map(template_from_json, items)))


_READERS: dict[str, Callable[..., Template]] = {
    "tensor": TensorPart,
    "constant": ConstantPart,
    "tuple": _sequence("tuple"),
    "list": _sequence("list"),
    "dict": lambda items: DictPart(
        tuple((key, template_from_json(item)) for key, item in items)
    ),
}
