"""Owns the sizes that a portable artifact is for: those of an exported program."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from magweld.aot.compile import CapturedCall
from magweld.aot.exported import arguments_of, described_inputs, exported_call
from magweld.aot.sources import Inputs, Model
from magweld.deploy.errors import EXPORT, RANGES, SIZES
from magweld.frontend.lifting.size_relation import Shapes, SizeRelation, relate

# Sizes of one artifact, each with a table of its own in the file.
_MOST_SIZES = 4096
# How many kinds of sizes say what depends on what.
_SAMPLES = 4


def exported(model: Model, inputs: Inputs | None, dynamic: Any) -> ExportedProgram:
    """Return a model as a program for ranges of sizes.

    Args:
        model: A module, or a program that was exported already.
        inputs: Example inputs.
        dynamic: As `dynamic_shapes` of `torch.export.export`; True for a program.

    Raises:
        UnsupportedError: `portable-export`.
    """
    if isinstance(model, ExportedProgram):
        if dynamic is not True:
            raise EXPORT.at("an exported program has its ranges: pass dynamic=True")
        return model
    if not isinstance(model, nn.Module) or inputs is None or dynamic is True:
        raise EXPORT.at("the model is no module, or inputs or ranges are missing")
    args, kwargs = ((), inputs) if isinstance(inputs, Mapping) else (inputs, {})
    try:
        return torch.export.export(
            model, tuple(args), dict(kwargs), dynamic_shapes=dynamic
        )
    except Exception as error:
        # What torch cannot export, and what it raises then, is its own.
        raise EXPORT.at(" ".join(str(error).split())) from error


@dataclass(frozen=True)
class OpenSizes:
    """The sizes that an exported program leaves open.

    Attributes:
        program: The program.
        args: Positional arguments of some sizes.
        kwargs: Keyword arguments.
        ranges: For each size its name, the least one and the largest one.
    """

    program: ExportedProgram
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    ranges: tuple[tuple[sympy.Symbol, int, int], ...]

    @staticmethod
    def of(program: ExportedProgram, inputs: Inputs | None) -> OpenSizes:
        """Return the sizes of a program.

        Raises:
            UnsupportedError: `portable-ranges`: there are none, or too many.
        """
        args, kwargs = arguments_of(program, inputs)
        symbols = {
            symbol
            for value in described_inputs(program)
            if isinstance(value, Tensor)
            for extent in value.shape
            for symbol in _expression(extent).free_symbols
        }
        ranges = []
        for symbol in sorted(symbols, key=str):
            known = program.range_constraints.get(symbol)
            if known is None or not known.upper.is_Integer:
                raise RANGES.at(f"{symbol} has no largest value")
            # A 1 is a program of its own, for each value of the other sizes.
            least = 1 if len(symbols) == 1 else 2
            ranges.append((symbol, max(int(known.lower), least), int(known.upper)))
        found = OpenSizes(program, args, kwargs, tuple(ranges))
        count = math.prod(most + 1 - least for _, least, most in ranges)
        if not ranges or count > _MOST_SIZES:
            raise RANGES.at(f"{found}: {count if ranges else 'no'} sizes")
        return found

    def __str__(self) -> str:
        """Return the ranges as text."""
        return ", ".join(f"{name} from {a} to {b}" for name, a, b in self.ranges)

    def every(self) -> Iterator[dict[sympy.Symbol, int]]:
        """Yield all sizes, those with a 1 first."""
        names = [symbol for symbol, _, _ in self.ranges]
        values = [range(least, most + 1) for _, least, most in self.ranges]
        every = [
            dict(zip(names, one, strict=True)) for one in itertools.product(*values)
        ]
        yield from sorted(every, key=lambda one: 1 not in one.values())

    def shapes(self, sizes: Mapping[sympy.Symbol, int]) -> Shapes:
        """Return the shapes of the tensors among the arguments."""
        return tuple(
            tuple(int(_expression(extent).subs(sizes)) for extent in value.shape)
            for value in described_inputs(self.program)
            if isinstance(value, Tensor)
        )

    def call(self, shapes: Shapes, *, any_sizes: bool = False) -> CapturedCall:
        """Return a call with arguments of some shapes.

        Args:
            shapes: Of the tensors among the arguments.
            any_sizes: Whether they may be out of the ranges.
        """
        left = iter(shapes)
        args, kwargs = pytree.tree_map_only(
            Tensor,
            lambda tensor: torch.zeros(next(left), dtype=tensor.dtype),
            (self.args, self.kwargs),
        )
        return exported_call(self.program, args, kwargs, any_sizes=any_sizes)

    def relations(self, state: Sequence[Tensor]) -> tuple[SizeRelation, SizeRelation]:
        """Return how shapes depend on the sizes, with two sets of stand-ins.

        Args:
            state: Tensors of the program, whose extents do not change.

        Raises:
            UnsupportedError: `portable-sizes`: they are no products of sizes.
        """
        constant = tuple(tuple(tensor.shape) for tensor in state)
        samples = [
            {
                symbol: sympy.prime(10 + 3 * sample * len(self.ranges) + number)
                for number, (symbol, _, _) in enumerate(self.ranges)
            }
            for sample in range(_SAMPLES)
        ]
        calls = [(self.shapes(sizes) + constant, ()) for sizes in samples]
        first = relate(calls)
        if isinstance(first, str):
            raise SIZES.at(first)
        second = relate(calls, avoided=first.stand_ins.numbers)
        if isinstance(second, str):
            raise SIZES.at(second)
        return first, second


def _expression(extent: Any) -> sympy.Expr:
    return (
        extent.node.expr if isinstance(extent, torch.SymInt) else sympy.Integer(extent)
    )
