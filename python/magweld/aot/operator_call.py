"""Owns calls of torch operators as data: name, arguments, places of the tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor, fx
from torch._ops import OpOverload

from magweld.aot.errors import EXTERNAL_CALL, ArtifactError
from magweld.aot.nested import PLAIN
from magweld.artifact import BoundsCheck, IndexCheck, RowOrder
from magweld.importer.externals import External, tensors_read, with_strides
from magweld.importer.gathers import CHECKED_BOUNDS, index_check_of
from magweld.importer.nodes import absorbed_operator
from magweld.importer.row_gradients import PLACES_BY_ROW

# Kind of object -> how it is named in torch's namespace.
_NAMED: dict[type, str] = {
    torch.dtype: "dtype",
    torch.layout: "layout",
    torch.memory_format: "memory_format",
}


@dataclass(frozen=True)
class OperatorCall:
    """One operator of a graph that runs through torch.

    Attributes:
        call: Operator name and arguments as JSON data; a tensor is its position.
        dtypes: torch's dtype of each tensor operand.
        strides: Strides to give each operand, where the operator depends on them.
        positions: Which parts of its result are read, None if it has no parts.
    """

    call: Any
    dtypes: tuple[str, ...]
    strides: tuple[tuple[int, ...], ...] | None
    positions: tuple[int, ...] | None

    @staticmethod
    def of(external: External) -> OperatorCall:
        """Return the call of an external as data.

        Raises:
            UnsupportedError: `artifact-external`.
        """
        operands = list(external.operands)
        return OperatorCall(
            _encode_call(external.node, external.node.target, operands),
            tuple(_name(node.meta["val"].dtype) for node in operands),
            external.strides,
            external.positions,
        )

    @property
    def index_check(self) -> IndexCheck | None:
        """What it compares, if all that it does is a check of indices."""
        if self.strides is not None:
            return None
        return index_check_of(self.call["operator"], self.call["args"], _place)

    @property
    def bounds_check(self) -> BoundsCheck | None:
        """What it compares, if all that it does is a check of bounds of bags."""
        places = _places(self.call["args"][1:3])
        known = self.call["operator"] == str(CHECKED_BOUNDS) and self.strides is None
        return BoundsCheck(*places) if known and len(places) == 2 else None

    @property
    def row_order(self) -> RowOrder | None:
        """How it sorts, if all that it does is to sort indices by what they name."""
        if self.call["operator"] != str(PLACES_BY_ROW) or self.strides is not None:
            return None
        indices, _, size, padding = self.call["args"]
        places = _places([indices])
        if len(places) != 1 or self.positions != (0, 1):
            return None
        return RowOrder(places[0], size, padding)

    def __call__(
        self, tensors: Sequence[Tensor], device: torch.device
    ) -> tuple[Tensor, ...]:
        """Run the operator on real operands.

        Args:
            tensors: The operands.
            device: Where they are; what the operator makes is made there.

        Raises:
            Exception: What torch raises, e.g. for an index out of range.
        """
        if self.strides is not None:
            pairs = zip(tensors, self.strides, strict=True)
            tensors = [with_strides(tensor, stride) for tensor, stride in pairs]
        typed = zip(tensors, self._types, strict=True)
        operands = [t if t.dtype is dtype else t.view(dtype) for t, dtype in typed]
        return tensors_read(_run(self.call, operands, device), self.positions)

    @cached_property
    def _types(self) -> tuple[torch.dtype, ...]:
        return tuple(getattr(torch, name) for name in self.dtypes)

    def to_json(self) -> Any:
        """Return it as JSON data."""
        return {
            "call": self.call,
            "dtypes": self.dtypes,
            "strides": self.strides,
            "positions": self.positions,
        }

    @staticmethod
    def from_json(data: Any) -> OperatorCall:
        """Rebuild it.

        Raises:
            ArtifactError: This torch has no such operator.
        """
        _operator(data["call"]["operator"])
        strides = data["strides"]
        if strides is not None:
            strides = tuple(map(tuple, strides))
        positions = data["positions"]
        return OperatorCall(
            data["call"],
            tuple(data["dtypes"]),
            strides,
            None if positions is None else tuple(positions),
        )


def _encode_call(node: fx.Node, target: Any, operands: Sequence[fx.Node]) -> Any:
    if not isinstance(target, OpOverload):
        raise EXTERNAL_CALL.at(f"node '{node.name}'")
    return {
        "operator": str(target),
        "args": [_encode(x, node, operands) for x in node.args],
        "kwargs": {k: _encode(x, node, operands) for k, x in node.kwargs.items()},
    }


def _encode(value: Any, node: fx.Node, operands: Sequence[fx.Node]) -> Any:
    if type(value) in PLAIN:
        return value
    if isinstance(value, (list, tuple)):
        return [_encode(item, node, operands) for item in value]
    if isinstance(value, fx.Node):
        if value in operands:
            return {"tensor": operands.index(value)}
        return {"call": _encode_call(value, absorbed_operator(value), operands)}
    if isinstance(value, torch.device):
        # All tensors of a program are on one device, that of the call.
        return {"device": None}
    if type(value) in _NAMED:
        return {"torch": _name(value)}
    raise EXTERNAL_CALL.at(f"node '{node.name}', a {type(value).__name__}")


def _name(value: object) -> str:
    return str(value).removeprefix("torch.")


def _run(call: Any, operands: Sequence[Tensor], device: torch.device) -> Any:
    args = [_decode(x, operands, device) for x in call["args"]]
    kwargs = {k: _decode(x, operands, device) for k, x in call["kwargs"].items()}
    return _operator(call["operator"])(*args, **kwargs)


def _decode(data: Any, operands: Sequence[Tensor], device: torch.device) -> Any:
    if isinstance(data, list):
        return [_decode(item, operands, device) for item in data]
    if not isinstance(data, dict):
        return data
    ((kind, value),) = data.items()
    return _DECODERS[kind](value, operands, device)


_DECODERS: dict[str, Callable[[Any, Sequence[Tensor], torch.device], Any]] = {
    "tensor": lambda index, operands, device: operands[index],
    "call": _run,
    "device": lambda _, operands, device: device,
    "torch": lambda name, operands, device: getattr(torch, name),
}


@cache
def _operator(name: str) -> OpOverload:
    namespace, operator, overload = name.split(".")
    try:
        packet = getattr(getattr(torch.ops, namespace), operator)
        found: OpOverload = getattr(packet, overload)
    except AttributeError as error:
        message = f"this torch has no operator '{name}'"
        raise ArtifactError("artifact-operator", message) from error
    return found


def _places(operands: Sequence[Any]) -> list[int]:
    """Return which of a call's tensors are among some of its arguments."""
    return [place for place in map(_place, operands) if place is not None]


def _place(argument: Any) -> int | None:
    """Return which of a call's tensors an argument is, None for others."""
    return argument.get("tensor") if isinstance(argument, dict) else None
