"""Owns what the entry function of a form calls, and the table of addresses it gets."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from magweld.artifact import (
    ExternalStep,
    IfStep,
    IndexCheck,
    KernelStep,
    LoopStep,
    Program,
    Step,
    WhileStep,
)
from magweld.artifact import (
    Place as ValuePlace,
)
from magweld.codegen.entry import (
    Call,
    CheckCall,
    CopyCall,
    IfCall,
    LaunchCall,
    LoopCall,
    Move,
    MoveCall,
    OtherCall,
    WhileCall,
)
from magweld.deploy.errors import EXTERNAL
from magweld.deploy.portable_file import Kind, Place
from magweld.runtime.layout import Layout
from magweld.runtime.looping import table_moves
from magweld.runtime.tiling import aligned
from magweld.runtime.validation import check_parts, check_program


class Constants:
    """The constants of all forms, each once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._known: dict[bytes, int] = {}

    def place(self, content: bytes) -> Place:
        """Return where some bytes are."""
        if content not in self._known:
            self._known[content] = len(self.data)
            self.data += content.ljust(aligned(len(content)), b"\0")
        return Place(Kind.DATA, 0, self._known[content])


@dataclass(frozen=True)
class _Scope:
    """A program, or one use of a part, with its entries of the table.

    Attributes:
        layout: Its values.
        base: Entry of its value 0. The entry in front of that is the runtime's.
        arena: Where its arena begins in the frame.
    """

    layout: Layout
    base: int
    arena: int

    def entry(self, value_id: int) -> int:
        """Return the entry of a value."""
        return self.base + value_id

    def entries(self, root: int) -> tuple[int, ...]:
        """Return the entries of a root and of all views of it."""
        return tuple(map(self.entry, (root, *self.layout.aliases[root])))

    def moves(self, root: int, source: int, add: int = 0) -> list[Move]:
        """Return what gives a root and its views the address of another entry."""
        return [Move(entry, source, add) for entry in self.entries(root)]


class EntryCalls:
    """Makes the calls of an entry function, and places what they work on.

    Loops of the program are those that `has_native_loops` lets pass.

    Attributes:
        layout: The program.
        table: Places of the table, those that code sets being of no kind.
        frame_bytes: Memory of a run that has been given away.
    """

    def __init__(
        self,
        program: Program,
        argument: Callable[[int], Place],
        check: Callable[[ExternalStep], tuple[IndexCheck, int]],
        constants: Constants,
    ) -> None:
        """Place the values of a program.

        Args:
            program: The program.
            argument: Tells where an argument is.
            check: Tells what a step checks, and the number of its message.
            constants: Where constants of the program go.
        """
        self.layout = check_program(program)
        self.frame_bytes = aligned(program.arena_bytes)
        self.table: list[Place] = []
        self._program = program
        self._parts = check_parts(program)
        self._argument = argument
        self._check_of = check
        self._constants = constants
        self._scope = self._enter(self.layout, 0)
        for number, value_id in enumerate(self.layout.inputs):
            place = self._argument(number)
            for entry in self._scope.entries(value_id):
                self.table[entry] = place

    def make(self) -> list[Call]:
        """Return the calls of all steps.

        Raises:
            UnsupportedError: A step has no place in a form.
        """
        return self._body(self._scope, frozenset())

    def place_of(self, value_id: int) -> Place:
        """Return where a value of the program is."""
        return self.table[self._scope.entry(value_id)]

    def allocate(self, nbytes: int) -> Place:
        """Return memory of a run that nothing else is in."""
        at = self.frame_bytes
        # No two places are the same.
        self.frame_bytes += aligned(max(nbytes, 1))
        return Place(Kind.FRAME, 0, at)

    def _enter(self, layout: Layout, arena: int) -> _Scope:
        """Append a table for a program or a part of it."""
        self.table.append(Place(Kind.RUNTIME))
        scope = _Scope(layout, len(self.table), arena)
        places = {
            root: self._root(layout, root, arena)
            for root in dict.fromkeys(layout.roots)
        }
        self.table += [places[root] for root in layout.roots]
        return scope

    def _enter_part(self, outer: _Scope, number: int, scratch: int) -> _Scope:
        return self._enter(self._parts[number], outer.arena + scratch)

    def _root(self, layout: Layout, root: int, arena: int) -> Place:
        value = layout.program.values[root]
        match value.place:
            case ValuePlace.ARENA:
                return Place(Kind.FRAME, 0, arena + value.offset)
            case ValuePlace.CONSTANT:
                return self._constants.place(self._program.constants[value.index])
            case _:
                return Place(Kind.NONE)

    def _append(self, place: Place) -> int:
        self.table.append(place)
        return len(self.table) - 1

    def _body(self, scope: _Scope, given: frozenset[int]) -> list[Call]:
        """Return the calls of all steps of a program.

        Args:
            scope: The program.
            given: Roots whose addresses code sets.
        """
        calls = []
        for step in scope.layout.program.steps:
            for value_id in step.writes:
                self._require_memory(scope, scope.layout.roots[value_id], given)
            calls += self._calls(scope, step)
        return calls

    def _require_memory(self, scope: _Scope, root: int, given: frozenset[int]) -> None:
        if self.table[scope.entry(root)].kind is Kind.NONE and root not in given:
            place = self.allocate(scope.layout.signatures[root].nbytes)
            for entry in scope.entries(root):
                self.table[entry] = place

    def _calls(self, scope: _Scope, step: Step) -> list[Call]:
        match step:
            case KernelStep():
                return [LaunchCall(step.symbol, scope.base)]
            case LoopStep():
                return [self._loop(scope, step)]
            case IfStep():
                return [self._if(scope, step)]
            case WhileStep():
                return self._while(scope, step)
            case ExternalStep():
                return [self._check(scope, step)]
        raise EXTERNAL.at(f"a step of kind {type(step).__name__}")

    def _check(self, scope: _Scope, step: ExternalStep) -> CheckCall:
        check, failure = self._check_of(step)
        signatures = scope.layout.signatures
        indices = step.reads[check.indices]
        rows = check.rows_of([signatures[one].shape for one in step.reads])
        count = prod(signatures[indices].shape)
        return CheckCall(
            source=scope.entry(indices),
            target=scope.entry(step.writes[0]),
            # It may be another one for other sizes; the code is the same.
            count=self._append(self._constants.place(struct.pack("<q", count))),
            bits=8 * signatures[indices].dtype.itemsize,
            lowest=-rows if check.lowest is None else check.lowest,
            end=rows,
            failure=failure,
        )

    def _loop(self, scope: _Scope, step: LoopStep) -> LoopCall:
        """Append the table of an iteration, as `looping.bind_native_loop` does."""
        inner = self._enter_part(scope, step.part, step.scratch)
        part = inner.layout
        # Behind the values is the other buffer of each result.
        spare = len(part.program.values)
        self.table += [Place(Kind.NONE)] * len(step.writes)
        handed = _handed_over(step, part, scope.arena)
        before: list[Move] = []
        for value_id, source, start in zip(
            part.inputs, step.reads, step.starts, strict=True
        ):
            add = start * part.itemsize(value_id)
            before += inner.moves(value_id, scope.entry(source), add)
        for number, value_id in enumerate(part.program.results):
            here, other = (
                inner.entries(part.roots[value_id]),
                (inner.base + spare + number,),
            )
            if step.trips % 2 == 0 and number in handed:
                here, other = other, here  # the last iteration writes the result
            target = scope.entry(step.writes[number])
            before += [Move(entry, target, 0) for entry in here]
            for entry in other if number in handed else ():
                self.table[entry] = handed[number]
        return LoopCall(
            calls=tuple(LaunchCall(name, inner.base) for name in part.kernel_symbols),
            trips=step.trips,
            before=tuple(before),
            after_each=tuple(
                Move(inner.base + to, inner.base + source, add)
                for to, source, add in table_moves(step, part, spare)
            ),
        )

    def _if(self, scope: _Scope, step: IfStep) -> IfCall:
        on_true, on_false = (self._arm(scope, step, part) for part in step.parts)
        return IfCall(scope.entry(step.reads[0]), tuple(on_true), tuple(on_false))

    def _arm(self, scope: _Scope, step: IfStep, part: int) -> list[Call]:
        inner = self._enter_part(scope, part, step.scratch)
        moves = _handed_on(scope, step.reads[1:], inner, 0)
        return self._part(inner, moves, list(map(scope.entry, step.writes)))

    def _while(self, scope: _Scope, step: WhileStep) -> list[Call]:
        """Append the table of an iteration, as `runtime.control` does."""
        inner = self._enter_part(scope, step.part, step.scratch)
        layout = inner.layout
        targets = list(map(scope.entry, step.writes))
        offset = scope.arena + step.scratch + aligned(layout.program.arena_bytes)
        buffers, sizes = [], []
        for value_id in layout.program.results:
            buffers.append(self._append(Place(Kind.FRAME, 0, offset)))
            sizes.append(layout.signatures[value_id].nbytes)
            offset += aligned(sizes[-1])
        *spare, test = buffers
        # What is carried now, and where it goes next.
        now = [self._append(Place(Kind.NONE)) for _ in targets]
        then = [self._append(Place(Kind.NONE)) for _ in targets]
        count = len(targets)
        # The first iteration reads the operands and writes the result.
        first = [
            *map(Move, now, map(scope.entry, step.reads[1 : 1 + count]), [0] * count),
            *map(Move, then, targets, [0] * count),
            *_handed_on(scope, step.reads[1 + count :], inner, count),
        ]
        carried = [
            move
            for value_id, source in zip(layout.inputs, now, strict=False)
            for move in inner.moves(value_id, source)
        ]
        body = self._part(inner, carried, [*then, test])
        # What was written is carried on, and the other buffer is written next.
        body.append(MoveCall(tuple(map(Move, now, then, [0] * count))))
        body += map(OtherCall, then, targets, spare)
        return [
            MoveCall(tuple(first)),
            WhileCall(scope.entry(step.reads[0]), test, tuple(body)),
            *map(CopyCall, targets, now, sizes),
        ]

    def _part(
        self, inner: _Scope, moves: Sequence[Move], targets: Sequence[int]
    ) -> list[Call]:
        """Return the calls of a part that writes its results to where entries lead.

        Args:
            inner: The part.
            moves: What sets the addresses of its arguments.
            targets: For each result the entry with its address.
        """
        layout = inner.layout
        moves = list(moves)
        late = []
        written: set[int] = set()
        for value_id, target in zip(layout.program.results, targets, strict=True):
            root = layout.roots[value_id]
            is_made = layout.root_value(value_id).place is ValuePlace.OUTPUT
            if is_made and root not in written:
                written.add(root)
                moves += inner.moves(root, target)
                continue
            # It is there already, or is written twice.
            nbytes = layout.signatures[value_id].nbytes
            late.append(CopyCall(target, inner.entry(value_id), nbytes))
        given = frozenset((*written, *layout.inputs))
        return [MoveCall(tuple(moves)), *self._body(inner, given), *late]


def _handed_on(
    scope: _Scope, reads: Sequence[int], inner: _Scope, first: int
) -> list[Move]:
    """Let arguments of a part, from a number on, be values of a program."""
    arguments = inner.layout.inputs[first:]
    return [
        move
        for value_id, source in zip(arguments, reads, strict=True)
        for move in inner.moves(value_id, scope.entry(source))
    ]


def _handed_over(step: LoopStep, part: Layout, arena: int) -> dict[int, Place]:
    """Return the second buffer of each result that the next iteration reads."""
    offset = arena + step.scratch + aligned(part.program.arena_bytes)
    found = {}
    for number, value_id in enumerate(part.program.results):
        if step.stacked[number]:
            continue
        if number in step.fed_by:
            found[number] = Place(Kind.FRAME, 0, offset)
        offset += aligned(part.signatures[value_id].nbytes)
    return found


def has_native_loops(program: Program) -> bool:
    """Tell whether iterations of loops are kernels alone, as forms need it."""
    layouts = (Layout(program), *check_parts(program))
    return all(
        layout.is_native(step)
        for layout in layouts
        for step in layout.program.steps
        if isinstance(step, LoopStep)
    )
