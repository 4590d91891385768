from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.artifact import ExternalStep, LibraryStep, Place, Program, Step, Value
from magweld.runtime.program import LoadedProgram

SIDE = 4
SHAPE = (SIDE, SIDE)
NBYTES = 4 * SIDE * SIDE


def average(tensors: Sequence[Tensor]) -> Tensor:
    return sum(tensors[1:], tensors[0]) / len(tensors)


class ProgramMaker:
    """Makes a random program and computes what it must return.

    Buffers of the arena are taken and given back at random, so that their bytes are
    used again as soon as the rules allow it.
    """

    def __init__(self, seed: int, affine: Any) -> None:
        self.random = random.Random(seed)
        self.affine = affine
        self.values: list[Value] = []
        self.expected: list[Tensor] = []
        self.steps: list[Step] = []
        self.kernels: list[Any] = []
        self.readable: list[int] = []
        self.free = [slot * NBYTES for slot in range(8)]

    def add_input(self, tensor: Tensor) -> None:
        value = Value(SHAPE, "f32", Place.INPUT, index=len(self.values))
        self.readable.append(self.add_value(value, tensor))

    def add_value(self, value: Value, expected: Tensor) -> int:
        self.values.append(value)
        self.expected.append(expected)
        return len(self.values) - 1

    def add_step(self) -> None:
        reads = tuple(self.random.choices(self.readable, k=2))
        operands = [self.expected[i] for i in reads]
        target = len(self.values)
        kind = self.random.choice(["kernel", "kernel", "library", "external"])
        if kind == "kernel":
            scale, shift = self.random.random(), self.random.random()
            kernel = self.affine(
                f"k{target}", reads, target, SIDE * SIDE, scale / 2, shift
            )
            self.kernels.append(kernel)
            self.steps.append(kernel.step)
            expected = scale / 2 * (operands[0] + operands[1]) + shift
        elif kind == "library":
            self.steps.append(LibraryStep("matmul", reads, (target,)))
            expected = operands[0] @ operands[1]
        else:
            self.steps.append(ExternalStep("average", reads, (target,)))
            expected = average(operands)
        self.add_value(self.new_place(kind), expected)
        self.readable.append(target)
        self.add_view(target)
        self.forget_some()

    def new_place(self, kind: str) -> Value:
        places = [Place.OUTPUT]
        places += [Place.ARENA] * 3 if self.free else []
        places += [Place.ADOPTED] * 2 if kind != "kernel" else []
        place = self.random.choice(places)
        if place is not Place.ARENA:
            return Value(SHAPE, "f32", place)
        offset = self.free.pop(self.random.randrange(len(self.free)))
        return Value(SHAPE, "f32", place, offset=offset)

    def add_view(self, root: int) -> None:
        if self.random.random() < 0.3:
            value = Value(SHAPE, "f32", Place.VIEW, index=root)
            self.readable.append(self.add_value(value, self.expected[root]))

    def forget_some(self) -> None:
        """Stop reading some buffers; their bytes are free for the next step."""
        for value_id in list(self.readable):
            value = self.values[value_id]
            if value.place is Place.ARENA and self.random.random() < 0.3:
                self.free.append(value.offset)
                self.readable = [
                    i for i in self.readable if not self.shows(i, value_id)
                ]

    def shows(self, value_id: int, root: int) -> bool:
        value = self.values[value_id]
        is_view = value.place is Place.VIEW and value.index == root
        return is_view or value_id == root

    def finish(self, build_object: Callable[[Sequence[Any]], bytes]) -> Program:
        return Program(
            tuple(self.values),
            tuple(self.steps),
            tuple(self.random.choices(self.readable, k=4)),
            arena_bytes=8 * NBYTES,
            objects=(build_object(self.kernels),),
        )


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_compute_what_torch_does(
    seed: int, affine: Any, build_object: Callable[[Sequence[Any]], bytes]
) -> None:
    generator = torch.Generator().manual_seed(seed)
    inputs = [torch.rand(SHAPE, generator=generator) / SIDE for _ in range(3)]
    maker = ProgramMaker(seed, affine)
    for tensor in inputs:
        maker.add_input(tensor)
    for _ in range(25):
        maker.add_step()
    program = maker.finish(build_object)
    loaded = LoadedProgram(program, lambda node, tensors: (average(tensors),))
    for _ in range(2):
        results = loaded(inputs)
        for value_id, result in zip(program.results, results, strict=True):
            torch.testing.assert_close(
                result, maker.expected[value_id], rtol=1e-4, atol=1e-5
            )
