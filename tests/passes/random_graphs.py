"""Owns random modules of linalg operations: maps, windows, reductions, moves."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

EXTENTS = (1, 2, 3, 4, 6)
BODIES = (
    "%s = arith.addf %p, %q : f32",
    "%s = arith.subf %p, %q : f32",
    "%s = arith.maximumf %p, %q : f32",
)


@dataclass(frozen=True)
class Value:
    """A tensor of the module."""

    name: str
    shape: tuple[int, ...]

    @property
    def type(self) -> str:
        return f"tensor<{''.join(f'{extent}x' for extent in self.shape)}f32>"


class Graph:
    """A module that grows by one random operation at a time."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.numbers = itertools.count()
        ranks = (self.random.randint(0, 3) for _ in range(3))
        shapes = [self.random.choices(EXTENTS, k=rank) for rank in ranks]
        self.arguments = [Value(f"%a{i}", tuple(s)) for i, s in enumerate(shapes)]
        self.values = list(self.arguments)
        self.read: set[Value] = set()

    def grow(self) -> None:
        add = self.random.choice(
            [self.map] * 6
            + [self.reduce] * 4
            + [self.both, self.window, self.pad, self.slice, self.join, self.reshape]
        )
        add()

    def text(self) -> str:
        inputs = ", ".join(f"{value.name}: {value.type}" for value in self.arguments)
        unread = [value for value in self.values if value not in self.read]
        results = unread or self.values[-1:]
        # What is read here may be wanted elsewhere as well.
        made = [v for v in self.values if v in self.read and v not in self.arguments]
        results += [v for v in made if v not in results and self.random.random() < 0.3]
        names = ", ".join(value.name for value in results)
        types = ", ".join(value.type for value in results)
        body = "\n  ".join(self.lines)
        return (
            f"func.func @main({inputs}) -> ({types}) {{\n"
            "  %zero = arith.constant 0.0 : f32\n"
            "  %lowest = arith.constant 0xFF800000 : f32\n"
            f"  {body}\n  return {names} : {types}\n}}\n"
        )

    def pick(self, least_rank: int = 0) -> Value:
        # What nobody reads yet more often, so that there are chains to connect.
        found = [value for value in self.values if len(value.shape) >= least_rank]
        if not found:
            shape = self.random.choices(EXTENTS, k=least_rank)
            found = [Value(f"%a{len(self.arguments)}", tuple(shape))]
            self.arguments += found
        unread = [value for value in found if value not in self.read]
        value = self.random.choice(
            unread if unread and self.random.random() < 0.8 else found
        )
        self.read.add(value)
        return value

    def made(self, shape: Sequence[int], text: str) -> Value:
        """Append an operation; `{}` is its type."""
        value = Value(f"%{next(self.numbers)}", tuple(shape))
        self.lines.append(f"{value.name} = {text.replace('{}', value.type)}")
        return value

    def keep(self, value: Value) -> None:
        self.values.append(value)

    def init(self, shape: Sequence[int], scalar: str | None) -> Value:
        empty = self.made(shape, "tensor.empty() : {}")
        if scalar is None:
            return empty
        return self.made(
            shape,
            f"linalg.fill ins({scalar} : f32) outs({empty.name} : {{}}) -> {{}}",
        )

    def loops(self) -> tuple[list[int], list[tuple[Value, list[int]]]]:
        """Extents of loops, and operands with the loop of each dimension."""
        first = self.pick()
        extents = list(first.shape) + self.random.choices(
            EXTENTS, k=self.random.randint(0, 3 - min(3, len(first.shape)))
        )
        self.random.shuffle(extents)
        operands = []
        for value in [first, *self.random.choices(self.values, k=2), first]:
            loops = self.matching(value, extents)
            if loops is not None:
                operands.append((value, loops))
        self.read.update(value for value, _ in operands[:2])
        return extents, operands[:2]

    def matching(self, value: Value, extents: list[int]) -> list[int] | None:
        orders = list(itertools.permutations(range(len(extents)), len(value.shape)))
        fitting = [
            list(order)
            for order in orders
            if tuple(extents[i] for i in order) == value.shape
        ]
        return self.random.choice(fitting) if fitting else None

    def generic(
        self,
        extents: list[int],
        operands: list[tuple[Value, list[int]]],
        inits: list[tuple[Value, list[int]]],
        body: str,
    ) -> list[Value]:
        kept = {loop for _, loops in inits for loop in loops}
        dims = ", ".join(f"d{i}" for i in range(len(extents)))
        maps = ", ".join(
            f"affine_map<({dims}) -> ({', '.join(f'd{i}' for i in loops)})>"
            for _, loops in (*operands, *inits)
        )
        kinds = ", ".join(
            '"parallel"' if i in kept else '"reduction"' for i in range(len(extents))
        )
        number = next(self.numbers)
        count = f":{len(inits)}" if len(inits) > 1 else ""
        outs = ", ".join(value.name for value, _ in inits)
        types = ", ".join(value.type for value, _ in inits)
        block = ", ".join(f"%{name}: f32" for name in ["p", "q", *"uv"[: len(inits)]])
        self.lines.append(
            f"%{number}{count} = linalg.generic {{indexing_maps = [{maps}], "
            f"iterator_types = [{kinds}]}} "
            f"ins({operands[0][0].name}, {operands[1][0].name} : "
            f"{operands[0][0].type}, {operands[1][0].type}) "
            f"outs({outs} : {types}) {{\n  ^bb0({block}):\n    {body}\n  }} "
            f"-> ({types})"
        )
        if len(inits) == 1:
            return [Value(f"%{number}", inits[0][0].shape)]
        return [Value(f"%{number}#{i}", v.shape) for i, (v, _) in enumerate(inits)]

    def order(self, loops: Sequence[int]) -> list[int]:
        straight = self.random.random() < 0.6
        return list(loops) if straight else self.random.sample(loops, len(loops))

    def map(self) -> None:
        extents, operands = self.loops()
        order = self.order(range(len(extents)))
        init = self.init([extents[i] for i in order], None)
        body = f"{self.random.choice(BODIES)}\n    linalg.yield %s : f32"
        self.values += self.generic(extents, operands, [(init, order)], body)

    def both(self) -> None:
        extents, operands = self.loops()
        orders = [self.order(range(len(extents))) for _ in range(2)]
        inits = [self.init([extents[i] for i in order], None) for order in orders]
        index = ""
        other = "%q"
        if extents:
            index = (
                f"%i = linalg.index {self.random.randrange(len(extents))} : index\n"
                "    %n = arith.index_cast %i : index to i32\n"
                "    %f = arith.sitofp %n : i32 to f32\n    "
            )
            other = "%f"
        body = f"{index}{BODIES[0]}\n    linalg.yield %s, {other} : f32, f32"
        pairs = list(zip(inits, orders, strict=True))
        self.values += self.generic(extents, operands, pairs, body)

    def reduce(self) -> None:
        extents, operands = self.loops()
        read = {loop for _, loops in operands for loop in loops}
        kept = [
            loop
            for loop in range(len(extents))
            if loop not in read or self.random.random() < 0.6
        ]
        order = self.order(kept)
        scalar, combine = self.random.choice(
            [("%zero", "arith.addf"), ("%lowest", "arith.maximumf")]
        )
        init = self.init([extents[i] for i in order], scalar)
        body = (
            f"{self.random.choice(BODIES)}\n    %t = {combine} %u, %s : f32\n"
            "    linalg.yield %t : f32"
        )
        self.values += self.generic(extents, operands, [(init, order)], body)

    def window(self) -> None:
        source = self.pick(least_rank=1)
        length = source.shape[-1]
        taps = self.random.choice([t for t in (1, 2, 3) if t <= length])
        stride = self.random.randint(1, 2)
        dilation = self.random.randint(1, 2) if taps > 1 else 1
        places = (length - 1 - (taps - 1) * dilation) // stride + 1
        if places < 1:
            return
        rank = len(source.shape)
        outer = "".join(f"d{i}, " for i in range(rank - 1))
        taken = self.made([taps], "tensor.empty() : {}")
        init = self.init([*source.shape[:-1], places], "%lowest")
        place = f"d{rank - 1} * {stride} + d{rank} * {dilation}"
        dims = ", ".join(f"d{i}" for i in range(rank + 1))
        maps = ", ".join(
            f"affine_map<({dims}) -> ({results})>"
            for results in (f"{outer}{place}", f"d{rank}", f"{outer}d{rank - 1}")
        )
        kinds = ", ".join(['"parallel"'] * rank + ['"reduction"'])
        self.keep(
            self.made(
                init.shape,
                f"linalg.generic {{indexing_maps = [{maps}], "
                f"iterator_types = [{kinds}]}} "
                f"ins({source.name}, {taken.name} : {source.type}, {taken.type}) "
                f"outs({init.name} : {{}}) {{\n"
                "  ^bb0(%p: f32, %w: f32, %u: f32):\n"
                "    %s = arith.maximumf %p, %u : f32\n"
                "    linalg.yield %s : f32\n  } -> {}",
            )
        )

    def pad(self) -> None:
        source = self.pick(least_rank=1)
        rank = len(source.shape)
        low, high = (self.random.choices((0, 1), k=rank) for _ in range(2))
        indices = ", ".join(f"%i{i}: index" for i in range(rank))
        shape = [sum(x) for x in zip(source.shape, low, high, strict=True)]
        self.keep(
            self.made(
                shape,
                f"tensor.pad {source.name} low{low} high{high} {{\n"
                f"  ^bb0({indices}):\n    tensor.yield %zero : f32\n"
                f"  }} : {source.type} to {{}}",
            )
        )

    def slice(self) -> None:
        source = self.pick(least_rank=1)
        sizes = [self.random.randint(1, extent) for extent in source.shape]
        offsets = [
            self.random.randint(0, e - s)
            for e, s in zip(source.shape, sizes, strict=True)
        ]
        ones = [1] * len(sizes)
        self.keep(
            self.made(
                sizes,
                f"tensor.extract_slice {source.name}{offsets} {sizes} {ones} "
                f": {source.type} to {{}}",
            )
        )

    def join(self) -> None:
        source = self.pick(least_rank=1)
        axis = self.random.randrange(len(source.shape))
        shape = list(source.shape)
        shape[axis] *= 2
        self.keep(
            self.made(
                shape,
                f"tensor.concat dim({axis}) {source.name}, {source.name} "
                f": ({source.type}, {source.type}) -> {{}}",
            )
        )

    def reshape(self) -> None:
        source = self.pick(least_rank=2)
        shape = [source.shape[0] * source.shape[1], *source.shape[2:]]
        groups = [[0, 1], *([i] for i in range(2, len(source.shape)))]
        self.keep(
            self.made(
                shape,
                f"tensor.collapse_shape {source.name} {groups} "
                f": {source.type} into {{}}",
            )
        )


def random_module(seed: int, operations: int) -> str:
    """Return the text of a module with about that many operations."""
    graph = Graph(seed)
    for _ in range(operations):
        graph.grow()
    return graph.text()
