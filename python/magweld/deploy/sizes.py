"""Owns the sizes that a portable artifact is for: those of an exported program."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import Tensor, fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from magweld.aot.compile import CapturedCall
from magweld.aot.exported import arguments_of, described_inputs, exported_call
from magweld.aot.sources import Inputs, Model
from magweld.deploy.errors import EXPORT, RANGES, SIZES
from magweld.diagnostics import UnsupportedError
from magweld.graphs.control_operators import IfOperator, WhileOperator
from magweld.graphs.size_relation import Shapes, SizeRelation, relate_twice
from magweld.importer.refusals import describe
from magweld.logs import expected_errors

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
            for value in _described_tensors(program)
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
            for value in _described_tensors(self.program)
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

        Stand-ins are out of the ranges unless the program is another one there, as
        where it reads the first rows of a table that has no more.

        Args:
            state: Tensors of the program, whose extents do not change.

        Raises:
            UnsupportedError: `portable-sizes`: they are no products of sizes, or the
                shapes in the program do not follow from them.
        """
        try:
            return self._relations(state, is_within=False)
        except UnsupportedError as refusal:
            try:
                return self._relations(state, is_within=True)
            except UnsupportedError:
                raise refusal from None

    def _relations(
        self, state: Sequence[Tensor], *, is_within: bool
    ) -> tuple[SizeRelation, SizeRelation]:
        constant = tuple(tuple(tensor.shape) for tensor in state)
        samples = [self._sample(number, is_within) for number in range(_SAMPLES)]
        calls = [(self.shapes(sizes) + constant, ()) for sizes in samples]
        pair = relate_twice(calls, is_within=is_within)
        if isinstance(pair, str):
            raise SIZES.at(pair)
        for relation in pair:
            self._check(relation, len(constant))
        return pair

    def _sample(self, number: int, is_within: bool) -> dict[sympy.Symbol, int]:
        """Return sizes that tell what depends on what."""
        count = len(self.ranges)
        return {
            symbol: max(least, most - number * count - at)
            if is_within
            else sympy.prime(10 + 3 * number * count + at)
            for at, (symbol, least, most) in enumerate(self.ranges)
        }

    def _check(self, relation: SizeRelation, held: int) -> None:
        """Refuse stand-ins for which the program makes other shapes than it tells.

        Args:
            relation: It has the stand-ins.
            held: Tensors of the program, the last ones of the relation.
        """
        shapes = relation.shapes[: len(relation.shapes) - held]
        call = self.call(shapes, any_sizes=True)
        sizes = self._sizes_of(shapes)
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        fakes = [mode.from_tensor(tensor) for tensor in call.example_inputs]
        try:
            with mode, torch.no_grad(), expected_errors():
                _ShapeCheck(call.graph, sizes).run(*fakes)
        except UnsupportedError:
            raise
        except Exception as error:
            # Sizes that the program does not take, or an operator that reads data.
            raise SIZES.at(" ".join(str(error).split())) from error

    def _sizes_of(self, shapes: Shapes) -> dict[sympy.Symbol, int]:
        """Return the sizes for which the arguments have some shapes."""
        described = _described_tensors(self.program)
        return {
            _expression(extent): found
            for value, shape in zip(described, shapes, strict=True)
            for extent, found in zip(value.shape, shape, strict=True)
            if _expression(extent).is_Symbol
        }


class _ShapeCheck(fx.Interpreter):
    """Runs a graph without data, and compares what it makes with what is known of it.

    Args:
        module: The graph; `meta` of its nodes has the values of the export.
        sizes: What the sizes of the export are.
    """

    def __init__(
        self, module: fx.GraphModule, sizes: Mapping[sympy.Symbol, int]
    ) -> None:
        super().__init__(module)
        self._sizes = sizes

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        known = pytree.tree_leaves(n.meta.get("val"))
        if n.op == "call_function" and known:
            for value, leaf in zip(known, pytree.tree_leaves(result), strict=True):
                self._compare(n, value, leaf)
        return result

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(target, IfOperator):
            results, _ = (self._part(body, args[1:]) for body in target.bodies)
            return results
        if isinstance(target, WhileOperator):
            *carried, _ = self._part(target.step, args[1:])
            return tuple(carried)
        return super().call_function(target, args, kwargs)

    def _part(self, body: Any, operands: Sequence[Any]) -> Any:
        return _ShapeCheck(body, self._sizes).run(*operands)

    def _compare(self, node: fx.Node, known: object, leaf: object) -> None:
        told: tuple[Any, ...]
        found: tuple[Any, ...]
        if isinstance(known, Tensor) and isinstance(leaf, Tensor):
            told, found = tuple(known.shape), tuple(leaf.shape)
        elif isinstance(known, torch.SymInt):
            told, found = (known,), (leaf,)
        else:
            return
        expected = tuple(_expression(extent).subs(self._sizes) for extent in told)
        if expected != found:
            raise SIZES.at(
                f"{describe(node)} makes {found} and not {expected} for sizes that"
                " stand for others"
            )


def _described_tensors(program: ExportedProgram) -> list[Tensor]:
    """Return what a program knows of the tensors among its arguments."""
    return [value for value in described_inputs(program) if isinstance(value, Tensor)]


def _expression(extent: Any) -> sympy.Expr:
    return (
        extent.node.expr if isinstance(extent, torch.SymInt) else sympy.Integer(extent)
    )
