"""Owns programs as trees of statements, and their generation from a seed."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import grammar

_TOKEN = re.compile(r"\{\{|\}\}|\{(=?)([A-Za-z]+)\}")
_FALLBACK = {
    "T": "x",
    "S": "torch.tensor(1.5)",
    "M": "(x > 0)",
    "J": "x.long()",
    "U": "(x, y)",
    "L": "PAIR",
    "D": "TABLE",
    "O": "OBJ",
    "C": "ADD",
    "G": "iter(NUMBERS)",
}
_GLOBALS = "global COUNT, LAST, MODE, TABLE"
_PARAMETERS = {"T": ["x", "y"], "F": ["k"], "B": ["flag"], "N": ["items"], "Z": ["z"]}


@dataclass
class Block:
    """Statements at one depth."""

    indent: str
    statements: list[Statement] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the source; an empty block needs a statement."""
        if not self.statements:
            yield f"{self.indent}pass"
        for statement in self.statements:
            for line in statement.lines():
                yield f"{self.indent}{line}"


@dataclass
class Statement:
    """A statement: lines of text, and the blocks in it."""

    parts: list[str | Block]

    def lines(self) -> Iterator[str]:
        """Yield the source."""
        for part in self.parts:
            if isinstance(part, str):
                yield part
            else:
                yield from part.lines()

    @property
    def blocks(self) -> list[Block]:
        """The blocks in it."""
        return [part for part in self.parts if isinstance(part, Block)]


@dataclass(frozen=True)
class Step:
    """One call: what changes before it, its arguments, and the grad mode."""

    changes: tuple[str, ...]
    arguments: tuple[str, ...]
    grad: bool


@dataclass
class Program:
    """A program and its calls."""

    seed: int
    body: Block
    result: str
    steps: list[Step]

    @property
    def source(self) -> str:
        """The function."""
        lines = ["def program(x, y, k, flag, items, z):", f"    {_GLOBALS}"]
        return "\n".join([*lines, *self.body.lines(), f"    return {self.result}"])

    def __str__(self) -> str:
        calls = [
            f"# {i}: {'; '.join(step.changes)} | program({', '.join(step.arguments)})"
            f"{'' if step.grad else ' | no_grad'}"
            for i, step in enumerate(self.steps)
        ]
        return "\n".join([f"# seed {self.seed}", self.source, *calls])


def _templates(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


_EXPRESSIONS = {kind: _templates(text) for kind, text in grammar.EXPRESSIONS.items()}
_STATEMENTS = _templates(grammar.STATEMENTS)
_CHANGES = _templates(grammar.CHANGES)
_TENSORS = _templates(grammar.TENSORS)
_SECOND = _templates(grammar.SECOND_TENSORS)


class Scope:
    """Local variables by type; those of outer functions can only be read."""

    def __init__(self, own: dict[str, list[str]], outer: Scope | None = None) -> None:
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

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self._count = 0

    def program(self) -> Program:
        """Return the program."""
        scope = Scope(_PARAMETERS)
        body = Block("    ")
        for _ in range(self.random.randint(2, 7)):
            body.statements.append(self.statement(scope, 2))
        result = self.expand(self.random.choice(grammar.RESULTS), scope, 2)
        return Program(self.seed, body, result, self.steps())

    def statement(self, scope: Scope, depth: int) -> Statement:
        """Return a statement; new variables enter the scope."""
        compound = depth > 0 and self.random.random() < 0.3
        pool = grammar.COMPOUND if compound else _STATEMENTS
        template = self.random.choice(pool)
        added: list[tuple[str, str]] = []
        if template.startswith("def local"):
            inside = Scope({"T": ["t"]} if "(t" in template else {}, scope)
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
                parts.append(f"    {_GLOBALS}")
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
                return known or _FALLBACK.get(upper) or self.expression(upper, scope, 0)
            return self.expression(kind, scope, depth - 1)

        return _TOKEN.sub(fill, template)

    def pick(self, names: list[str]) -> str:
        """Return a variable, more often a late one."""
        return names[-1] if self.random.random() < 0.5 else self.random.choice(names)

    def expression(self, kind: str, scope: Scope, depth: int) -> str:
        """Return an expression of a type."""
        names = scope.names(kind)
        if names and (depth <= 0 or self.random.random() < 0.45):
            return self.pick(names)
        pool = _EXPRESSIONS[kind]
        if depth <= 0:
            leaves = [text for text in pool if "{" not in text]
            if not leaves or (kind in _FALLBACK and self.random.random() < 0.5):
                return _FALLBACK[kind]
            return self.random.choice(leaves)
        text = self.expand(self.random.choice(pool), scope, depth)
        return f"({text})" if " " in text and not text.startswith(("[", "(")) else text

    def steps(self) -> list[Step]:
        """Return the calls: most repeat the one before with other data."""
        arguments, grad = self.arguments(), self.random.random() < 0.8
        if self.random.random() < 0.15:
            return self.drift(arguments, grad)
        steps = [Step((), arguments, grad)]
        for _ in range(self.random.randint(4, 6)):
            changes: tuple[str, ...] = ()
            roll = self.random.random()
            if roll < 0.5:
                count = 1 if roll < 0.4 else 2
                changes = tuple(self.change() for _ in range(count))
            elif roll < 0.65:
                arguments = self.vary(arguments)
            elif roll < 0.7:
                grad = not grad
            steps.append(Step(changes, arguments, grad))
        return steps

    def drift(self, arguments: tuple[str, ...], grad: bool) -> list[Step]:
        """Return calls in which a number or a size is another each time."""
        x, y, k, *rest = arguments
        size = self.random.random() < 0.5
        steps = []
        for number in range(self.random.randint(5, 8)):
            if size:
                x = y = f"torch.randn({1 + number * 2 % 7}, 3)"
            else:
                k = f"{number - 2}{self.random.choice(['', '.5'])}"
            changes = (self.change(),) if self.random.random() < 0.15 else ()
            steps.append(Step(changes, (x, y, k, *rest), grad))
        return steps

    def change(self) -> str:
        """Return a change of the state."""
        template = self.random.choice(_CHANGES)
        return _TOKEN.sub(lambda match: self.literal(match.group(2)), template)

    def literal(self, kind: str) -> str:
        """Return a literal."""
        pool = {"F": grammar.FLOATS, "Z": grammar.STRINGS, "I": "0 1 2 3".split()}
        return self.random.choice(pool[kind])

    def arguments(self) -> tuple[str, ...]:
        """Return the sources of all arguments."""
        choose = self.random.choice
        return (
            choose(_TENSORS[:6]),
            choose([*_TENSORS[:4], *_SECOND]),
            choose(grammar.FLOATS[:4]),
            choose(["True", "False"]),
            choose(grammar.LISTS),
            choose(grammar.STRINGS),
        )

    def vary(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """Return arguments of which one is another."""
        pools = (
            _TENSORS,
            [*_TENSORS, *_SECOND, *_SECOND],
            grammar.FLOATS,
            ["True", "False", "1"],
            grammar.LISTS,
            grammar.STRINGS,
        )
        index = self.random.choice((0, 0, 1, 1, 2, 3, 4, 5))
        changed = list(arguments)
        changed[index] = self.random.choice(pools[index])
        return tuple(changed)


def generate(seed: int) -> Program:
    """Return the program of a seed; the same one always."""
    for attempt in range(100):
        program = Generator(seed * 1000 + attempt).program()
        program.seed = seed
        try:
            compile(program.source, "<program>", "exec")
        except SyntaxError:
            continue
        return program
    raise AssertionError(f"seed {seed} gives no program")
