"""Owns the calls of a program: which arguments they have and what changes before."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

from .grammar import TOKEN, Grammar
from .program import Step


class Calls:
    """Generates the calls of one program."""

    def __init__(self, chooser: random.Random, grammar: Grammar) -> None:
        self._random = chooser
        self._grammar = grammar

    def steps(self, functions: list[str]) -> list[Step]:
        """Return the calls: most repeat the one before with other data."""
        parameters = self._grammar.parameters
        arguments = tuple(self._random.choice(p.first) for p in parameters)
        grad = self._random.random() < 0.8
        drifts = self._random.random() < self._grammar.drifting
        steps = (self._drift if drifts else self._vary)(arguments, grad)
        if self._grammar.surroundings:
            steps = list(self._surrounded(steps))
        if len(functions) == 1:
            return steps
        return [
            dataclasses.replace(step, function=self._random.choice(functions))
            for step in steps
        ]

    def _surrounded(self, steps: list[Step]) -> Iterator[Step]:
        """Yield calls of which some run within something, and in other threads."""
        around, threads, usual = "", 0, self._random.random() < 0.5
        for step in steps:
            if self._random.random() < (0.1 if usual else 0.4):
                around = self._random.choice(["", *self._grammar.surroundings])
            if self._random.random() < 0.1:
                threads = self._random.choice((0, 1, 1, 2))
            yield dataclasses.replace(step, around=around, threads=threads)

    def _vary(self, arguments: tuple[str, ...], grad: bool) -> list[Step]:
        steps = [Step((), arguments, grad)]
        for _ in range(self._random.randint(4, 6)):
            changes: tuple[str, ...] = ()
            roll = self._random.random()
            if roll < 0.5:
                count = 1 if roll < 0.4 else 2
                changes = tuple(self._change() for _ in range(count))
            elif roll < 0.65:
                arguments = self._another(arguments)
            elif roll < 0.7:
                grad = not grad
            steps.append(Step(changes, arguments, grad))
        return steps

    def _drift(self, arguments: tuple[str, ...], grad: bool) -> list[Step]:
        steps = []
        flipping = self._grammar.flipping
        for drifted in self._grammar.drift(self._random, arguments):
            if flipping and self._random.random() < flipping:
                grad = not grad
            changes = (self._change(),) if self._random.random() < 0.15 else ()
            steps.append(Step(changes, drifted, grad))
        return steps

    def _change(self) -> str:
        template = self._random.choice(self._grammar.changes)
        literals = self._grammar.literals
        return TOKEN.sub(lambda m: self._random.choice(literals[m.group(2)]), template)

    def _another(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """Return arguments of which one is another."""
        parameters = self._grammar.parameters
        weighted = [i for i, p in enumerate(parameters) for _ in range(p.weight)]
        index = self._random.choice(weighted)
        changed = list(arguments)
        changed[index] = self._random.choice(parameters[index].later)
        return tuple(changed)
