"""Owns what an artifact does around its compiled function, as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from magweld.aot.errors import OUTPUT_KIND
from magweld.aot.operator_call import OperatorCall
from magweld.artifact import NativeCheck
from magweld.importer.dtypes import carried
from magweld.importer.epilogue import (
    Buffer,
    BufferOutput,
    ChoiceOutput,
    DetachedOutput,
    Epilogue,
    InputOutput,
    InputViewOutput,
    Output,
    ResultOutput,
    SameOutput,
    Window,
)
from magweld.importer.externals import index_checks_of
from magweld.short_repr import short_repr


@dataclass(frozen=True)
class CallPlan:
    """The way of tensors into the compiled function and out of it.

    Attributes:
        feeds: For each input of the graph whether it is of the state, and which.
        arguments: For each argument of the function, which input of the graph.
        converted: Arguments that must be made contiguous or given another type.
        epilogue: What happens after the function.
        externals: Operators that run through torch, by node name.
    """

    __repr__ = short_repr

    feeds: tuple[tuple[bool, int], ...]
    arguments: tuple[int, ...]
    converted: tuple[int, ...]
    epilogue: Epilogue
    externals: dict[str, OperatorCall]

    def __post_init__(self) -> None:
        for output in self.epilogue.outputs:
            if type(output).__name__ not in _OUTPUTS:
                raise OUTPUT_KIND.at(f"an output of kind {type(output).__name__}")

    def gather(self, inputs: Sequence[Tensor], state: Sequence[Tensor]) -> list[Tensor]:
        """Return the inputs of the graph."""
        return [(state if held else inputs)[index] for held, index in self.feeds]

    def prepare(self, every: Sequence[Tensor]) -> list[Tensor]:
        """Return the arguments of the compiled function."""
        arguments = [every[position] for position in self.arguments]
        for number in self.converted:
            arguments[number] = carried(arguments[number].contiguous())
        return arguments

    def run_external(
        self, device: torch.device, node: str, tensors: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        """Run an operator through torch on a device."""
        return self.externals[node](tensors, device)

    @property
    def index_checks(self) -> dict[str, NativeCheck]:
        """The externals that check or sort indices, by node name."""
        return index_checks_of(self.externals)

    def to_json(self) -> Any:
        """Return it as JSON data."""
        epilogue = self.epilogue
        return {
            "feeds": self.feeds,
            "arguments": self.arguments,
            "converted": self.converted,
            "externals": {k: call.to_json() for k, call in self.externals.items()},
            "writes": epilogue.writes,
            "silently": sorted(epilogue.silently),
            "carried": [[n, _dtype_name(dtype)] for n, dtype in epilogue.carried],
            "buffers": [
                [_dtype_name(b.dtype), b.count, [[r, asdict(w)] for r, w in b.fills]]
                for b in epilogue.buffers
            ],
            "outputs": [_output_to_json(output) for output in epilogue.outputs],
        }

    @staticmethod
    def from_json(data: Any) -> CallPlan:
        """Rebuild it."""
        outputs = tuple(_output(*entry) for entry in data["outputs"])
        epilogue = Epilogue(
            writes=tuple((a, b) for a, b in data["writes"]),
            buffers=tuple(_buffer(*fields) for fields in data["buffers"]),
            outputs=outputs,
            structure=pytree.tree_structure(tuple(range(len(outputs)))),
            carried=tuple((n, getattr(torch, name)) for n, name in data["carried"]),
            silently=frozenset(data.get("silently", ())),
        )
        return CallPlan(
            tuple((held, index) for held, index in data["feeds"]),
            tuple(data["arguments"]),
            tuple(data["converted"]),
            epilogue,
            {k: OperatorCall.from_json(call) for k, call in data["externals"].items()},
        )


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _output_to_json(output: Output) -> list[Any]:
    if isinstance(output, ChoiceOutput):
        both = map(_output_to_json, (output.on_true, output.on_false))
        return ["ChoiceOutput", [output.result, output.test, *both]]
    return [type(output).__name__, asdict(output)]  # type: ignore[call-overload]


def _output(kind: str, fields: Any) -> Output:
    return _OUTPUTS[kind](fields)


def _choice(data: Any) -> ChoiceOutput:
    result, test, on_true, on_false = data
    return ChoiceOutput(result, test, _output(*on_true), _output(*on_false))


def _window(data: Any) -> Window:
    return Window(tuple(data["shape"]), tuple(data["stride"]), data["offset"])


def _optional_window(data: Any) -> Window | None:
    return None if data is None else _window(data)


def _buffer(dtype: str, count: int, fills: Any) -> Buffer:
    windows = tuple((result, _window(window)) for result, window in fills)
    return Buffer(getattr(torch, dtype), count, windows)


_OUTPUTS: dict[str, Callable[[Any], Output]] = {
    "InputOutput": lambda d: InputOutput(d["input"]),
    "InputViewOutput": lambda d: InputViewOutput(d["input"], _window(d["window"])),
    "DetachedOutput": lambda d: DetachedOutput(
        d["input"], _optional_window(d["window"]), d.get("counted", True)
    ),
    "SameOutput": lambda d: SameOutput(d["position"]),
    "ResultOutput": lambda d: ResultOutput(
        d["result"], _optional_window(d["window"]), d.get("own", False)
    ),
    "ChoiceOutput": _choice,
    "BufferOutput": lambda d: BufferOutput(
        d["buffer"], _window(d["window"]), d.get("own", False), d.get("base")
    ),
}
