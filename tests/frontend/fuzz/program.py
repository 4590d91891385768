"""Owns generated programs: functions as trees of statements, and the calls of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


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


@dataclass
class Function:
    """A function: its name, its first lines, its statements, and what it returns."""

    name: str
    header: list[str]
    body: Block
    result: str

    def lines(self) -> Iterator[str]:
        """Yield the source."""
        yield from self.header
        yield from self.body.lines()
        yield f"    return {self.result}"


@dataclass(frozen=True)
class Step:
    """One call.

    Attributes:
        changes: What happens to the state before it.
        arguments: Sources of the arguments.
        grad: Whether gradients are recorded.
        function: Name of the function that is called.
        around: Source of a context manager around the call, "" for none.
        threads: Number of threads that call one after the other, 0 for the main one.
    """

    changes: tuple[str, ...]
    arguments: tuple[str, ...]
    grad: bool
    function: str = "program"
    around: str = ""
    threads: int = 0

    def __str__(self) -> str:
        call = f"{self.function}({', '.join(self.arguments)})"
        how = [
            "" if self.grad else "no_grad",
            self.around,
            f"{self.threads} threads" if self.threads else "",
        ]
        return " | ".join(["; ".join(self.changes), call, *filter(None, how)])


@dataclass
class Program:
    """Functions over one state, and their calls.

    Attributes:
        seed: What it was generated from.
        grammar: Name of the grammar that it was generated from.
        functions: Its functions, each of them traced for itself.
        steps: The calls.
        dynamic: What is lifted from the first call on.
    """

    seed: int
    grammar: str
    functions: list[Function]
    steps: list[Step]
    dynamic: str | dict[str, bool | tuple[int, ...]] = "auto"

    @property
    def source(self) -> str:
        """The functions."""
        return "\n".join(line for item in self.functions for line in item.lines())

    def is_valid(self) -> bool:
        """Return whether Python compiles the source."""
        try:
            compile(self.source, "<program>", "exec")
        except SyntaxError:
            return False
        return True

    def __str__(self) -> str:
        calls = [f"# {number}: {step}" for number, step in enumerate(self.steps)]
        head = f"# grammar {self.grammar}, seed {self.seed}, dynamic {self.dynamic!r}"
        return "\n".join([head, self.source, *calls])
