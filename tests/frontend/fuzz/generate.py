"""Owns the generation of programs from a grammar and a seed."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .calls import Calls
from .grammar import TOKEN, Grammar
from .grammars import GRAMMARS
from .program import Block, Function, Program, Statement

_PARAMETERS = re.compile(r"def local\(([^)]*)\)")


class Scope:
    """Local variables by type; those of outer functions can only be read."""

    def __init__(
        self, own: Mapping[str, list[str]], outer: Scope | None = None
    ) -> None:
        self.own = {kind: list(names) for kind, names in own.items()}
        self.outer = outer

    def names(self, kind: str) -> list[str]:
        """Return the variables that can be read."""
        more = [] if self.outer is None else self.outer.names(kind)
        return [*self.own.get(kind, ()), *more]

    def inner(self) -> Scope:
        """Return a copy for a block, whose variables may stay unbound."""
        return Scope(self.own, self.outer)


class Generator:
    """Generates one program."""

    def __init__(self, grammar: Grammar, seed: int) -> None:
        self.grammar = grammar
        self.random = random.Random(seed)
        self.seed = seed
        self._count = 0

    def program(self) -> Program:
        """Return the program."""
        names = ["program", "second"][: self.chosen(self.grammar.functions)]
        functions = [self.function(name) for name in names]
        steps = Calls(self.random, self.grammar).steps(names)
        dynamic = self.chosen(self.grammar.dynamic)
        return Program(self.seed, self.grammar.name, functions, steps, dynamic)

    def chosen(self, options: Sequence[Any]) -> Any:
        """Return one of some options; nothing is drawn for a single one."""
        return options[0] if len(options) == 1 else self.random.choice(options)

    def function(self, name: str) -> Function:
        """Return one function."""
        grammar = self.grammar
        scope, body = Scope(grammar.variables), Block("    ")
        for group in grammar.prologue:
            line = self.expand(self.random.choice(group), scope, 1)
            body.statements.append(Statement([line]))
        for _ in range(self.random.randint(2, 7)):
            body.statements.append(self.statement(scope, grammar.depth))
        result = self.expand(self.random.choice(grammar.results), scope, 2)
        parameters = ", ".join(parameter.name for parameter in grammar.parameters)
        header = [f"def {name}({parameters}):", f"    {grammar.declared}"]
        return Function(name, header, body, result)

    def statement(self, scope: Scope, depth: int) -> Statement:
        """Return a statement; new variables enter the scope."""
        grammar = self.grammar
        compound = depth > 0 and self.random.random() < grammar.branching
        template = self.random.choice(
            grammar.compound if compound else grammar.statements
        )
        added: list[tuple[str, str]] = []
        if template.startswith("def local"):
            inside = Scope(self._parameters_of(template), scope)
        else:
            inside = scope.inner()
        parts: list[str | Block] = []
        latest: dict[str, str] = {}
        for line in template.split("\n"):
            if line.strip() == "{*}":
                indent = line[: line.index("{")]
                parts.append(self.block(inside.inner(), depth - 1, indent))
                continue
            fresh: list[tuple[str, str]] = []
            place = inside if line.startswith(" ") else scope
            parts.append(self.expand(line, place, 2, fresh, latest))
            if line.startswith("def local"):
                parts.append(f"    {grammar.declared}")
            for kind, name in fresh:
                inside.own.setdefault(kind, []).append(name)
                if not line.startswith(" "):
                    added.append((kind, name))
        if not template.startswith(("if", "for", "while", "try")):
            for kind, name in added:
                scope.own.setdefault(kind, []).append(name)
        if template.startswith("def local(t):\n    nonlocal"):
            # The declaration has to come first.
            parts[1], parts[2] = parts[2], parts[1]
        return Statement(parts)

    def _parameters_of(self, template: str) -> dict[str, list[str]]:
        match = _PARAMETERS.match(template)
        assert match is not None, template
        found: dict[str, list[str]] = {}
        for text in match.group(1).split(", "):
            name = text.split("=")[0]
            kind = self.grammar.inner.get(name)
            if kind is not None:
                found.setdefault(kind, []).append(name)
        return found

    def block(self, scope: Scope, depth: int, indent: str) -> Block:
        """Return a block of a few statements."""
        block = Block(indent)
        for _ in range(self.random.randint(1, 2)):
            block.statements.append(self.statement(scope, depth))
        return block

    def expand(
        self,
        template: str,
        scope: Scope,
        depth: int,
        fresh: list[tuple[str, str]] | None = None,
        latest: dict[str, str] | None = None,
    ) -> str:
        """Return a template with everything in braces filled in."""
        latest = {} if latest is None else latest
        if template in ("{=L} = []", "{=D} = {}", "{=N} = []"):
            template = template.replace("= {}", "= {{}}")

        def fill(match: re.Match[str]) -> str:
            token = match.group(0)
            if token in ("{{", "}}"):
                return token[0]
            kind = match.group(2)
            if match.group(1):
                self._count += 1
                name = latest[kind] = f"{kind.lower()}{self._count}"
                if fresh is not None:
                    fresh.append((kind, name))
                return name
            if kind.islower():
                upper = kind.upper()
                own = scope.own.get(upper, [])
                known = latest.get(upper) or (self.pick(own) if own else None)
                return (
                    known
                    or self.grammar.fallback.get(upper)
                    or self.expression(upper, scope, 0)
                )
            return self.expression(kind, scope, depth - 1)

        return TOKEN.sub(fill, template)

    def pick(self, names: list[str]) -> str:
        """Return a variable, more often a late one."""
        return names[-1] if self.random.random() < 0.5 else self.random.choice(names)

    def expression(self, kind: str, scope: Scope, depth: int) -> str:
        """Return an expression of a type."""
        names = scope.names(kind)
        if names and (depth <= 0 or self.random.random() < 0.45):
            return self.pick(names)
        pool = self.grammar.expressions[kind]
        if depth <= 0:
            leaves = [text for text in pool if "{" not in text]
            if not leaves or (
                kind in self.grammar.fallback and self.random.random() < 0.5
            ):
                return self.grammar.fallback[kind]
            return self.random.choice(leaves)
        text = self.expand(self.random.choice(pool), scope, depth)
        return f"({text})" if " " in text and not text.startswith(("[", "(")) else text


def generate(grammar: str, seed: int) -> Program:
    """Return the program of a seed; the same one always."""
    for attempt in range(100):
        program = Generator(GRAMMARS[grammar], seed * 1000 + attempt).program()
        program.seed = seed
        if program.is_valid():
            return program
    raise AssertionError(f"seed {seed} gives no program")
