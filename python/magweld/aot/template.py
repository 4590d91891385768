"""Owns how a program's result is put together from tensors and constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import Tensor

from magweld.aot.errors import OUTPUT_KIND, ArtifactError
from magweld.aot.nested import Nested, built, from_json, nested_of, to_json


@dataclass(frozen=True)
class TensorPart:
    """A tensor of the call.

    Attributes:
        source: "outputs", "inputs" or "state".
        index: Which one.
    """

    source: str
    index: int


Template: TypeAlias = Nested[TensorPart]


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

    def build(self, template: Template) -> Any:
        """Return the result of the call."""
        return built(template, lambda part: getattr(self, part.source)[part.index])

    def template(self, result: object) -> Template:
        """Return the template of a result that was made of these.

        Raises:
            UnsupportedError: `artifact-output`.
        """
        return nested_of(result, self._part, _refuse)

    def _part(self, value: object) -> TensorPart | None:
        if not isinstance(value, Tensor):
            return None
        for source in ("outputs", "inputs", "state"):
            for index, candidate in enumerate(getattr(self, source)):
                if candidate is value:
                    return TensorPart(source, index)
        raise OUTPUT_KIND.at("a tensor that the graph neither takes nor makes")


def _refuse(where: str, kind: str) -> Exception:
    return OUTPUT_KIND.at(f"a result of type {kind}")


def template_to_json(part: Template) -> Any:
    """Return a template as JSON data, for `template_from_json`."""
    if isinstance(part, TensorPart):
        return ["tensor", part.source, part.index]
    return list(to_json(part, template_to_json))


def template_from_json(data: Any) -> Template:
    """Rebuild a template from its JSON data.

    Raises:
        ArtifactError: It is none.
    """
    try:
        kind, *fields = data
        if kind == "tensor":
            return TensorPart(*fields)
        (content,) = fields
        return from_json(kind, content, template_from_json)
    except (TypeError, ValueError) as error:
        raise ArtifactError(
            "artifact-damaged", f"no result template: {error}"
        ) from error
