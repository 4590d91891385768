"""Owns symbols for sizes, and what stands for them in runs on fake tensors."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)

from magweld.frontend.lifting.ahead import InputForm
from magweld.frontend.lifting.known_results import KnownResults


class _Sizes(ShapeEnv):
    """Symbolic sizes; that they come from a line of the user's is not told to torch.

    To find that line, torch would import four hundred modules of its compiler.
    """

    def _get_user_frame(self) -> FrameType | None:
        return sys._getframe(1)


@functools.cache
def import_what_symbols_need() -> None:
    """Make a symbol: torch imports what it needs for symbols when it makes one."""
    form = InputForm(
        "x", "x", frozenset({0}), (3,), (1,), torch.float32, torch.device("cpu")
    )
    SymbolicEnvironment().input(form)


@dataclass(frozen=True)
class SymbolicInput:
    """What stands for an input.

    Attributes:
        fake: A fake tensor.
        sizes: Names of the symbols that are its lifted dimensions.
        strides: Names of symbols that are strides of their own, by dimension.
    """

    fake: Any
    sizes: Mapping[int, str]
    strides: Mapping[int, str]


class SymbolicEnvironment:
    """Symbols for the sizes and numbers of a program, and what operators make of them.

    Runs of the program with other sizes take what is here as far as they are the same.
    What torch assumes of symbols stays in `env.guards`: it must hold for the sizes of
    each run, whichever has made torch assume it.

    Attributes:
        env: The symbols.
        mode: The mode of the fake tensors.
        known: What operators have given.
        is_fresh: Whether no run has been here before this one.
        is_refuted: Whether what was assumed of symbols does not hold for some run.
    """

    def __init__(self) -> None:
        self.env = _Sizes(duck_shape=False, specialize_zero_one=True)
        self.mode = FakeTensorMode(shape_env=self.env)
        # Each operator runs once: an entry of the cache costs more than the operator.
        self.mode.cache_enabled = False
        self.known = KnownResults()
        self.is_fresh = True
        self.is_refuted = False
        self._made: dict[Hashable, list[Any]] = {}
        self._turns: Counter[Hashable] = Counter()
        self._names: set[str] = set()

    @property
    def is_for_others(self) -> bool:
        """Whether further runs may take what is here."""
        return self.known.is_stable and not self.is_refuted

    def begin(self) -> None:
        """Begin a further run."""
        self.is_fresh = False
        self.known.begin()
        self._turns.clear()

    def input(self, form: InputForm) -> SymbolicInput:
        """Return what stands for an input; called outside of the mode."""
        made: SymbolicInput = self._next(form.key, lambda: self._make_input(form))
        return made

    def number(self, path: str, value: int) -> tuple[str, torch.SymInt]:
        """Return the name of the symbol for a number that is read at a path, and it.

        Args:
            path: How the number is reached.
            value: What it is in this run.
        """
        made: tuple[str, torch.SymInt]
        made = self._next(path, lambda: self._make_number(value))
        return made

    def _next(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what this run is to have of a kind: each time another one."""
        made, turn = self._made.setdefault(key, []), self._turns[key]
        self._turns[key] += 1
        if turn == len(made):
            made.append(make())
        return made[turn]

    def _source(self, name: str) -> ConstantSource:
        """Return a source of its own for what is made."""
        own = f"{name}_{len(self._names)}" if name in self._names else name
        self._names.add(own)
        return ConstantSource(own)

    def _make_input(self, form: InputForm) -> SymbolicInput:
        plain = torch.empty_strided(
            form.shape, form.stride, dtype=form.dtype, device=form.device
        )
        if not form.dims:
            return SymbolicInput(
                self.mode.from_tensor(plain, static_shapes=True), {}, {}
            )
        kinds = [
            DimDynamic.DYNAMIC if dim in form.dims else DimDynamic.STATIC
            for dim in range(len(form.shape))
        ]
        context: Any = StatelessSymbolicContext(dynamic_sizes=kinds)
        source = self._source(form.name)
        fake: Any = self.mode.from_tensor(
            plain, symbolic_context=context, source=source
        )
        # Now: later another symbol may have taken the place of one of them.
        sizes = {dim: fake.shape[dim].node.expr.name for dim in form.dims}
        strides = {
            dim: stride.node.expr.name
            for dim, stride in enumerate(fake.stride())
            if not isinstance(stride, int) and stride.node.expr.is_Symbol
        }
        own = {d: name for d, name in strides.items() if name not in sizes.values()}
        return SymbolicInput(fake, sizes, own)

    def _make_number(self, value: int) -> tuple[str, torch.SymInt]:
        source = self._source("number")
        symbol = self.env.create_symbol(
            value,
            source,
            dynamic_dim=DimDynamic.DYNAMIC,
            positive=None,
            do_not_specialize_zero_one=True,
        )
        number: Any = self.env.create_symintnode(symbol, hint=value, source=source)
        return str(symbol), number
