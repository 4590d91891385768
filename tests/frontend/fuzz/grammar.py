"""Owns the form of a grammar: templates by type, state, and how calls change.

`{X}` in a template stands for an expression of type X, `{x}` in lower case for a local
variable of that type, `{=X}` for a new one, `{*}` for a block of statements.
"""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

TOKEN: Final = re.compile(r"\{\{|\}\}|\{(=?)([A-Za-z]+)\}")

# Yields the arguments of one call after the other.
Drift = Callable[[random.Random, tuple[str, ...]], Iterator[tuple[str, ...]]]


def templates(text: str) -> list[str]:
    """Return the lines of a text."""
    return [line.strip() for line in text.strip().splitlines()]


def paragraphs(text: str) -> list[str]:
    """Return the parts of a text between empty lines."""
    return textwrap.dedent(text).strip().split("\n\n")


@dataclass(frozen=True)
class Parameter:
    """A parameter: sources of its argument in the first call and in later ones.

    Attributes:
        weight: How often a later call has another value for it.
    """

    name: str
    first: Sequence[str]
    later: Sequence[str]
    weight: int = 1


@dataclass(frozen=True)
class Grammar:
    """What programs are made of.

    Attributes:
        name: How it is chosen.
        world: Source of the state that its programs use.
        parameters: Those of every function.
        variables: Parameters, and what the prologue sets, by type.
        inner: Types of the parameters of functions within functions.
        declared: The `global` statement that comes first.
        prologue: Templates of the statements that follow it; one of each is taken.
        expressions: Templates by type.
        fallback: Expressions by type where nothing else fits.
        statements: Templates of one line.
        compound: Templates with blocks.
        results: Templates of what is returned.
        changes: What happens to the state between two calls.
        literals: What stands for a type in a change.
        drift: Yields arguments that are others in each call.
        drifting: How often it is used.
        flipping: How often the grad mode changes then.
        functions: Numbers of functions in a program, one of which is chosen.
        dynamic: What is lifted from the first call on, one of which is chosen.
        depth: How deep blocks nest.
        branching: How often a statement has blocks.
        surroundings: Context managers, one of which may be around a call.
        nested: Names in the state that are traced for themselves, too.
    """

    name: str
    world: str
    parameters: tuple[Parameter, ...]
    variables: Mapping[str, list[str]]
    inner: Mapping[str, str]
    declared: str
    prologue: Sequence[Sequence[str]]
    expressions: Mapping[str, list[str]]
    fallback: Mapping[str, str]
    statements: Sequence[str]
    compound: Sequence[str]
    results: Sequence[str]
    changes: Sequence[str]
    literals: Mapping[str, Sequence[str]]
    drift: Drift
    drifting: float
    flipping: float = 0.0
    functions: Sequence[int] = (1,)
    dynamic: Sequence[Any] = ("auto",)
    depth: int = 2
    branching: float = 0.3
    surroundings: Sequence[str] = ()
    nested: Sequence[str] = ()
