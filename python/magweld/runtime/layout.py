"""Owns what follows from a program's values alone: roots, views, lifetimes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import torch

from magweld.artifact import (
    ExternalStep,
    IfStep,
    KernelStep,
    LoopStep,
    Place,
    Program,
    Step,
    Value,
    WhileStep,
)
from magweld.runtime.dtypes import torch_dtype
from magweld.runtime.errors import ProgramError
from magweld.short_repr import short_repr


@dataclass(frozen=True)
class Signature:
    """Shape and dtype that one tensor has on every call."""

    shape: torch.Size
    dtype: torch.dtype

    @property
    def stride(self) -> tuple[int, ...]:
        """Strides of a contiguous tensor of this signature, as torch has them."""
        sizes = [max(size, 1) for size in self.shape]
        return tuple(prod(sizes[k + 1 :]) for k in range(len(sizes)))

    @property
    def nbytes(self) -> int:
        """Bytes of a contiguous tensor of this signature."""
        return prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Layout:
    """A program with its views resolved; shared by all concurrent calls.

    A *root* is a value that is no view; the root of a view is the value whose bytes
    it shows. Construct only from checked programs (`validation.check_program`) or
    for checking one.

    Attributes:
        program: The program.
        like: The layout of the program with stand-ins that this one is of, where it
            differs in the shapes that depend on sizes alone.
    """

    __repr__ = short_repr

    program: Program
    like: Layout | None = None

    @cached_property
    def signatures(self) -> tuple[Signature, ...]:
        """Shape and dtype of every value.

        Raises:
            ProgramError: An element type has no torch dtype.
        """
        if self.like is None:
            return tuple(map(_signature, self.program.values))
        signatures = list(self.like.signatures)
        for value_id in self.like.program.runtime_values:
            signatures[value_id] = _signature(self.program.values[value_id])
        return tuple(signatures)

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """Root of every value.

        Raises:
            ProgramError: A view leads nowhere or back to itself.
        """
        if self.like is not None:
            return self.like.roots
        return tuple(self._root(i) for i in range(len(self.program.values)))

    def _root(self, start: int) -> int:
        values = self.program.values
        at = start
        for _ in values:
            if values[at].place is not Place.VIEW:
                return at
            at = values[at].index
            if not 0 <= at < len(values):
                raise ProgramError("bad-view", f"view {start} leads to no value")
        raise ProgramError("bad-view", f"view {start} leads back to itself")

    def root_value(self, value_id: int) -> Value:
        """Return the value whose bytes `value_id` shows."""
        return self.program.values[self.roots[value_id]]

    @cached_property
    def aliases(self) -> tuple[tuple[int, ...], ...]:
        """For every root the views of it, in order of id; () for views."""
        if self.like is not None:
            return self.like.aliases
        views: list[list[int]] = [[] for _ in self.program.values]
        for value_id, root in enumerate(self.roots):
            if value_id != root:
                views[root].append(value_id)
        return tuple(map(tuple, views))

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """Value id of every argument, in order of arguments."""
        if self.like is not None:
            return self.like.inputs
        found = (
            (value.index, value_id)
            for value_id, value in enumerate(self.program.values)
            if value.place is Place.INPUT
        )
        return tuple(value_id for _, value_id in sorted(found))

    @cached_property
    def lifetimes(self) -> dict[int, tuple[int, int]]:
        """For every root that a step writes: first writing and last using step.

        Results live one step longer than the last.
        """
        if self.like is not None:
            return self.like.lifetimes
        spans: dict[int, tuple[int, int]] = {}
        for number, step in enumerate(self.program.steps):
            for root in {self.roots[i] for i in step.writes}:
                spans[root] = (spans.get(root, (number, number))[0], number)
            for root in {self.roots[i] for i in step.reads} & spans.keys():
                spans[root] = (spans[root][0], number)
        for root in {self.roots[i] for i in self.program.results} & spans.keys():
            spans[root] = (spans[root][0], len(self.program.steps))
        return spans

    def makes_each(self, fresh: Collection[str] = ()) -> bool:
        """Whether each result is memory that a call takes for it alone.

        Args:
            fresh: Nodes of the external steps whose results are memory of their own.
        """
        made = {
            value_id
            for step in self.program.steps
            if isinstance(step, ExternalStep) and step.node in fresh
            for value_id in step.writes
        }
        roots = [self.roots[value_id] for value_id in self.program.results]
        return len({*roots}) == len(roots) and all(
            self.program.values[root].place is Place.OUTPUT or root in made
            for root in roots
        )

    @property
    def kernel_symbols(self) -> tuple[str, ...]:
        """Launch functions of the kernel steps, in order."""
        steps = self.program.steps
        return tuple(step.symbol for step in steps if isinstance(step, KernelStep))

    def part(self, number: int) -> Layout:
        """Return the layout of a part, which may run parts in front of it."""
        parts = self.program.parts
        return Layout(replace(parts[number], parts=parts[:number]))

    def is_native(self, step: Step) -> bool:
        """Whether a step is one call of native code, on addresses alone.

        A loop is if its iterations have kernels alone, and make their results in
        memory that they are given; a branch or a loop on a truth value if all steps of
        its parts are.
        """
        if isinstance(step, IfStep | WhileStep):
            parts = map(self.part, step.parts)
            return all(part.is_native(s) for part in parts for s in part.program.steps)
        if isinstance(step, LoopStep):
            part = self.part(step.part)
            return len(part.kernel_symbols) == len(part.program.steps) and (
                part.makes_each()
            )
        return isinstance(step, KernelStep)

    def itemsize(self, value_id: int) -> int:
        """Return the bytes of an element of a value."""
        return self.signatures[value_id].dtype.itemsize

    def values_in(self, *places: Place) -> Iterator[int]:
        """Yield the ids of the values that have one of these places."""
        for value_id, value in enumerate(self.program.values):
            if value.place in places:
                yield value_id


def _signature(value: Value) -> Signature:
    return Signature(torch.Size(value.shape), torch_dtype(value.dtype))
