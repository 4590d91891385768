"""Owns the form of a program: its state, its body, and the calls of it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

IMPORTS = """
import array, contextlib, copy, dataclasses, enum, heapq, itertools, math, operator
import os, pickle, types, weakref
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace as NS
from torch import nn
def _x(k=1.0): return torch.tensor([1.0, 2.0]) * k
class K:
    def __init__(self, s=1.0): self.s = s
"""


@dataclass(frozen=True)
class Case:
    """A program `f(x, v)` over some state, and its calls.

    Attributes:
        state: Source of the state.
        body: Source of the body of `f`.
        calls: A call a line, "changes before it | arguments"; "3: " in front of it
            stands for three of them. `results` holds what calls have returned.
        hits: How many calls a record has to answer at least.
        before: State that several programs have.
    """

    state: str
    body: str
    calls: str
    hits: int = 1
    before: str = ""

    @property
    def setup(self) -> str:
        """The state with what all programs use."""
        return IMPORTS + self.before + textwrap.dedent(self.state)

    @property
    def indented(self) -> str:
        """The body within the function."""
        return textwrap.indent(textwrap.dedent(self.body).strip(), "    ").lstrip()

    @property
    def split(self) -> str:
        """The body with a break in front of its last statement, if that returns."""
        *lines, last = self.indented.split("\n")
        is_plain = last.strip().startswith("return ") and not last.startswith("     ")
        return (
            "\n".join([*lines, "    os.getpid()", last]) if is_plain and lines else ""
        )

    @property
    def steps(self) -> list[str]:
        """The calls one by one."""
        steps: list[str] = []
        for line in textwrap.dedent(self.calls).strip().splitlines():
            count, _, call = line.partition(": ")
            steps += [call] * int(count) if count.isdecimal() else [line]
        return steps
