"""Owns external steps that native code runs on the addresses of a frame.

To call such a step as an operator, and to ask of its results what they are, takes
longer than the step where it has few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import torch

from magweld.artifact import ExternalStep, Place
from magweld.codegen.call_words import BoundCode
from magweld.runtime.layout import Layout

if TYPE_CHECKING:
    from magweld.runtime.frame import Frame

# Shape, strides and dtype of a result.
ResultForm = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]


class NativeStep(Protocol):
    """What runs an external step for some sizes.

    Attributes:
        results: What it makes, in the order of what the step writes.
    """

    @property
    def results(self) -> tuple[ResultForm, ...]:
        """What it makes, in the order of what the step writes."""

    def run(self, table: int, ids: tuple[int, ...]) -> None:
        """Run on addresses.

        Args:
            table: Where these are.
            ids: Where in the table those of operands are, then of results.
        """

    def bound(self, ids: tuple[int, ...], threads: int) -> BoundCode | None:
        """Return the code that `run` runs; None if it is no single call.

        Args:
            ids: As of `run`.
            threads: Those that torch has.
        """


def native_steps(
    layout: Layout, found: Mapping[str, NativeStep]
) -> dict[str, NativeStep]:
    """Return those that make what the steps of a program write, by node.

    Args:
        layout: The program.
        found: What runs steps, by node.
    """
    steps = {
        step.node: step
        for step in layout.program.steps
        if isinstance(step, ExternalStep)
    }
    return {
        node: native
        for node, native in found.items()
        if node in steps and _fits(layout, steps[node], native)
    }


def _fits(layout: Layout, step: ExternalStep, native: NativeStep) -> bool:
    values = [layout.program.values[value_id] for value_id in step.writes]
    signatures = [layout.signatures[value_id] for value_id in step.writes]
    forms = [(tuple(s.shape), s.stride, s.dtype) for s in signatures]
    adopted = all(value.place is Place.ADOPTED for value in values)
    return adopted and forms == list(native.results)


def bind_native(
    frame: Frame, step: ExternalStep, otherwise: Callable[[], object]
) -> Callable[[], None]:
    """Return a function that runs a step, natively where the form of a call has it.

    Args:
        frame: What it reads and writes.
        step: The step.
        otherwise: Runs it as an operator.
    """
    node, writes = step.node, step.writes
    ids = (*step.reads, *writes)

    def run() -> None:
        native = frame.form.natives.get(node)
        if native is None:
            otherwise()
            return
        empty: Callable[..., torch.Tensor] = frame.machine.empty
        for value_id, form in zip(writes, native.results, strict=True):
            frame.place(value_id, empty(*form))
        native.run(frame.table_address, ids)

    return run
