"""Owns what is static about a code object: stack depths, successors, handlers."""

from __future__ import annotations

import copy
import dis
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.naming import instructions_in

if TYPE_CHECKING:
    from magweld.frontend.lifting.shadow import Rule, Stepless

# 3.11 traces a prefixed instruction once, at its first EXTENDED_ARG; 3.12 reports the
# prefixes and the instruction itself.
_EVENT_AT_PREFIX: Final = sys.version_info < (3, 12)

_TERMINAL: Final = frozenset(
    {
        "RETURN_VALUE",
        "RETURN_CONST",
        "RAISE_VARARGS",
        "RERAISE",
        "JUMP_FORWARD",
        "JUMP_BACKWARD",
        "JUMP_BACKWARD_NO_INTERRUPT",
    }
)
# A variable of this name is never set: deleting it raises. Continuations end so.
TRAP: Final = "<stop>"
JUMPS: Final = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
# Flags of code: what takes `*args` and `**kwargs`; what may be left and go on later;
# the body of a function, not of a class or a module.
VARIADIC: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
SUSPENDABLE: Final = (
    inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
)
FUNCTION: Final = inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS
# Instructions that run what the program calls.
CALLS: Final = ("CALL", "CALL_FUNCTION_EX", "CALL_KW")
# 3.13 pushes a callable and then its receiver, or an empty slot; other versions push
# the empty slot first, too, but a method before its receiver.
CALLABLE_FIRST: Final = sys.version_info >= (3, 13)
_LOOPS_END_LATE: Final = sys.version_info[:2] == (3, 13)
# 3.14 has a place for the keyword arguments of CALL_FUNCTION_EX in any case, which is
# empty if there are none; others say by a flag whether there is one.
_KEYWORDS_PLACED: Final = sys.version_info >= (3, 14)
# Instructions of 3.13 that do two others on local variables, one after the other. Half
# a byte of the argument is for each.
_FUSED: Final = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}
# With a flag they push a callable and its receiver, or an empty slot.
_MAY_PUSH_PAIR: Final = ("LOAD_ATTR", "LOAD_GLOBAL", "LOAD_SUPER_ATTR")
_PUSHES_PAIR: Final = "LOAD_SPECIAL"  # of 3.14, always
_COMPARES_TO_BOOL: Final = 0x10  # flag of COMPARE_OP

Handler = Callable[[Any, "Row", list[Any]], None]
Mapped = Mapping[str, "Instruction"]


@dataclass(frozen=True)
class Instruction:
    """What an operation of the interpreter does.

    Attributes:
        handler: Records what it reads and writes, before it runs; None when it cannot
            touch shared state.
        pops: Number of values that it takes from the stack, perhaps given its row;
            None for all that the frame has.
        finish: What becomes of the expressions of these values when it is done;
            without it they are pinned.
        begin: Looks at them before it runs.
        stepless: Whether nothing need be followed where none of them, and no variable
            that is named, has an expression, and the handler meets none; None if it is
            always followed.
    """

    handler: Handler | None
    pops: int | Callable[[Row], int] | None = None
    finish: Rule | None = None
    begin: Rule | None = None
    stepless: Stepless | None = None


class Row:
    """One instruction.

    Attributes:
        opname: Name of the operation.
        arg: Its argument, 0 if it has none.
        argval: The argument resolved: a name, a constant, a jump target.
        offset: Byte offset of the event.
        depth: Depth of the value stack before the instruction.
        instruction: What its operation does.
        handler: The same as that of the instruction, if not replaced.
        normal: Offsets that may follow when no exception is raised.
        handlers: Offsets of the exception handlers that cover the instruction.
        parts: The instructions that it does one after the other; none if it is one.
        above: Number of values that it leaves above its result: of 3.13 the receiver of
            a method, or an empty slot.
    """

    __slots__ = (
        "above",
        "arg",
        "argval",
        "depth",
        "handler",
        "handlers",
        "instruction",
        "normal",
        "offset",
        "opname",
        "parts",
    )

    def __init__(self, read: dis.Instruction, depth: int, table: Mapped) -> None:
        self.opname = read.opname
        self.arg = read.arg or 0
        self.argval = read.argval
        self.offset = read.offset
        self.depth = depth
        self.instruction = table.get(self.opname, _UNKNOWN)
        self.handler = self.instruction.handler
        self.normal: frozenset[int] = frozenset()
        self.handlers: frozenset[int] = frozenset()
        self.parts: tuple[Row, ...] = ()
        pairs = CALLABLE_FIRST and self.opname in _MAY_PUSH_PAIR
        self.above = self.arg & 1 if pairs else int(self.opname == _PUSHES_PAIR)

    @property
    def each(self) -> tuple[Row, ...]:
        """The instructions that it does one after the other, itself if it is one."""
        return self.parts or (self,)

    @property
    def tests_result(self) -> bool:
        """Whether it compares and takes the truth of what the comparison gives."""
        flagged = bool(self.arg & _COMPARES_TO_BOOL)
        return CALLABLE_FIRST and self.opname == "COMPARE_OP" and flagged

    @property
    def taken(self) -> int:
        """Number of values that it takes from the stack."""
        pops = self.instruction.pops
        if pops is None:
            return self.depth
        return pops(self) if callable(pops) else pops

    def with_handler(self, handler: Handler) -> Row:
        """Return the same row with another rule."""
        row = copy.copy(self)
        row.handler = handler
        return row


class CodeTable:
    """Rows of one code object, indexed by `offset // 2`."""

    __slots__ = ("code", "rows")

    def __init__(self, code: CodeType, table: Mapped) -> None:
        """Build and validate the table.

        Raises:
            StopRecordingError: The stack depths are inconsistent; reading the stack
                with such a depth could crash the process.
        """
        self.code = code
        self.rows: list[Row | None] = [None] * (len(code.co_code) // 2)
        flow = Flow(code)
        depths = flow.depths()
        for instruction in flow.instructions:
            offset = instruction.offset
            if offset in depths and instruction.opname != "EXTENDED_ARG":
                row = self._row(instruction, depths[offset], flow, table)
                self._place(row, flow, table)

    def _row(
        self, instruction: dis.Instruction, depth: int, flow: Flow, table: Mapped
    ) -> Row:
        row = Row(instruction, depth, table)
        if instruction.opname in _FUSED:
            row.parts = self._parts(instruction, depth, table)
        if not any(map(self._has_rule, row.each)):
            row.handler = None
        row.normal = frozenset(flow.normal(instruction))
        row.handlers = frozenset(flow.covering(instruction.offset))
        return row

    def _parts(
        self, instruction: dis.Instruction, depth: int, table: Mapped
    ) -> tuple[Row, ...]:
        rows = []
        for part in parts_of(instruction):
            rows.append(Row(part, depth, table))
            if not self._has_rule(rows[-1]):
                rows[-1].handler = None
            depth += effect(part, jump=False)
        return tuple(rows)

    def _has_rule(self, row: Row) -> bool:
        """Return whether an instruction touches more than stack and locals."""
        if row.opname == "LOAD_CONST":
            return type(row.argval) in _COMPOUND
        if row.opname == "LOAD_FAST":
            # 3.13 loads cells this way to make a closure.
            cells = cell_names(self.code) if CALLABLE_FIRST else ()
            return row.argval in (*variadic_names(self.code), *cells)
        return row.handler is not None

    def _place(self, row: Row, flow: Flow, table: Mapped) -> None:
        prefixes = flow.prefixes(row.offset)
        self.rows[row.offset // 2] = row
        if _EVENT_AT_PREFIX:
            for offset in prefixes:
                self.rows[offset // 2] = row
            return
        for offset, after in pairwise([*prefixes, row.offset]):
            prefix = Row(flow.index[offset], row.depth, table)
            prefix.handler = None
            prefix.normal = frozenset({after})
            self.rows[offset // 2] = prefix


_COMPOUND: Final = (tuple, frozenset, slice, CodeType)


def _refuse(frame: Any, row: Row, stack: list[Any]) -> None:
    raise StopRecordingError("opcode", row.opname)


_UNKNOWN: Final = Instruction(_refuse)


def spread_count(arg: int) -> int:
    """Return how many values CALL_FUNCTION_EX takes from the stack."""
    return 4 if _KEYWORDS_PLACED else 3 + (arg & 1)


def spread_arguments(arg: int, stack: list[Any], null: Any) -> tuple[Any, Any]:
    """Return the iterable and the mapping that CALL_FUNCTION_EX takes apart.

    Args:
        null: What stands for an empty place of the stack.
    """
    if not (_KEYWORDS_PLACED or arg & 1):
        return stack[-1], {}
    args, kwargs = stack[-2:]
    return args, {} if kwargs is null else kwargs


def variadic_names(code: CodeType) -> tuple[str, ...]:
    """Return the names of `*args` and `**kwargs`, which the call itself creates."""
    start = code.co_argcount + code.co_kwonlyargcount
    count = (code.co_flags & VARIADIC).bit_count()
    return code.co_varnames[start : start + count]


def cell_names(code: CodeType) -> tuple[str, ...]:
    """Return the names of the variables whose slots hold cells."""
    return (*code.co_cellvars, *code.co_freevars)


def slot_names(code: CodeType) -> tuple[str, ...]:
    """Return the names of local, cell and free variables in the order of the frame."""
    # An argument that is a cell shares the slot of the argument.
    cells = (name for name in code.co_cellvars if name not in code.co_varnames)
    return (*code.co_varnames, *cells, *code.co_freevars)


def slot_count(code: CodeType) -> int:
    """Return the number of slots of these variables."""
    return len(slot_names(code))


# Names by which code gets at its own frame, or sees which objects its variables keep
# alive: then every variable counts as read.
_FRAME_NAMES: Final = frozenset(
    {"_getframe", "currentframe", "dir", "eval", "exec", "locals", "vars"}
    | {"__traceback__", "exc_info", "f_locals", "gi_frame", "tb_frame"}
    | {"get_objects", "get_referrers", "getrefcount", "getweakrefcount", "weakref"}
    | {"WeakKeyDictionary", "WeakSet", "WeakValueDictionary"}
)
# The same, unless it is an attribute of something else than the module `inspect`.
_STACK: Final = "stack"


def looks_at_frames(code: CodeType) -> bool:
    """Return whether code may read variables other than by its instructions."""
    if _STACK in code.co_names and ("inspect" in code.co_names or _loads_stack(code)):
        return True
    return not _FRAME_NAMES.isdisjoint(code.co_names)


def _loads_stack(code: CodeType) -> bool:
    return any(
        instruction.argval == _STACK
        and instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        for instruction in dis.get_instructions(code)
    )


class Flow:
    """Control flow of a code object."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.instructions = list(instructions_in(code))
        self.index = {i.offset: i for i in self.instructions}
        offsets = [i.offset for i in self.instructions]
        self.following = dict(pairwise(offsets))
        parse: Callable[[CodeType], Iterable[Any]]
        parse = dis._parse_exception_table  # type: ignore[attr-defined]
        self.regions = list(parse(code))

    def normal(self, instruction: dis.Instruction) -> list[int]:
        """Return the offsets that follow when no exception is raised."""
        result = []
        if not _is_terminal(instruction):
            result.append(self.following.get(instruction.offset, -1))
        if instruction.opcode in JUMPS:
            target = instruction.argval
            result.append(target)
            result += self._skipped(target)
        return result

    def _skipped(self, target: int) -> list[int]:
        """Return where an exhausted loop may go on instead of at its target.

        3.12 may leave END_FOR out, which takes two values from the stack, and 3.14
        what takes one; 3.13 leaves out END_FOR and POP_TOP, which take one each.
        """
        if self.index[target].opname != "END_FOR":
            return []
        behind = self.following[target]
        return [self.following[behind] if _LOOPS_END_LATE else behind]

    def covering(self, offset: int) -> list[int]:
        """Return the targets of the exception table entries over an offset."""
        return [r.target for r in self.regions if r.start <= offset < r.end]

    def prefixes(self, offset: int) -> list[int]:
        """Return the offsets of the EXTENDED_ARG before an instruction."""
        result: list[int] = []
        before = offset - 2
        while before in self.index and self.index[before].opname == "EXTENDED_ARG":
            result.insert(0, before)
            before -= 2
        return result

    def depths(self) -> dict[int, int]:
        """Return the stack depth before each reachable instruction.

        Raises:
            StopRecordingError: Two paths disagree, or a depth is impossible.
        """
        depth: dict[int, int] = {}
        work = [(0, 0)]
        work += [(r.target, r.depth + 1 + r.lasti) for r in self.regions]
        while work:
            offset, now = work.pop()
            while offset in self.index:
                if offset in depth:
                    self._check(depth[offset] == now, offset)
                    break
                instruction = self.index[offset]
                depth[offset] = now
                if instruction.opcode in JUMPS:
                    after = now + effect(instruction, jump=True)
                    work.append((instruction.argval, after))
                if _is_terminal(instruction):
                    returns = instruction.opname == "RETURN_VALUE"
                    self._check(not returns or now == 1, offset)
                    break
                now += effect(instruction, jump=False)
                self._check(0 <= now <= self.code.co_stacksize, offset)
                offset = self.following.get(offset, -1)
        return depth

    def _check(self, holds: bool, offset: int) -> None:
        if not holds:
            name = self.code.co_qualname
            raise StopRecordingError("stack-depth", f"{name} at {offset}")


def _is_terminal(instruction: dis.Instruction) -> bool:
    if instruction.opname == "DELETE_FAST":
        return bool(instruction.argval == TRAP)
    return instruction.opname in _TERMINAL


def parts_of(instruction: dis.Instruction) -> tuple[dis.Instruction, ...]:
    """Return the instructions that one does in turn, itself if it is one."""
    names = _FUSED.get(instruction.opname)
    if names is None:
        return (instruction,)
    args = divmod(instruction.arg or 0, 16)
    return tuple(
        instruction._replace(opname=name, opcode=dis.opmap[name], arg=arg, argval=value)
        for name, arg, value in zip(names, args, instruction.argval, strict=True)
    )


def effect(instruction: dis.Instruction, jump: bool) -> int:
    """Return the change of depth, corrected for where `dis` does not tell it.

    3.11 takes the arguments of a call away at PRECALL while they stay until CALL;
    RETURN_GENERATOR leaves one value more than 3.11 and 3.12 say, on 3.13 what it says.
    """
    name = instruction.opname
    if name == "PRECALL":
        return 0
    arg = instruction.arg if instruction.opcode >= dis.HAVE_ARGUMENT else None
    change = dis.stack_effect(instruction.opcode, arg, jump=jump)
    if name == "CALL" and sys.version_info < (3, 12):
        return change - (instruction.arg or 0)
    if name == "RETURN_GENERATOR" and not CALLABLE_FIRST:
        return change + 1
    return change


class CodeTables:
    """Tables of all code objects met so far, for one table of instructions."""

    def __init__(self, table: Mapped) -> None:
        self._table = table
        self._tables: dict[int, CodeTable] = {}

    def table(self, code: CodeType) -> CodeTable:
        """Return the table of a code object.

        Raises:
            StopRecordingError: Its stack depths cannot be determined.
        """
        known = self._tables.get(id(code))
        if known is None:
            # The table holds the code, so the id cannot be used again.
            known = self._tables[id(code)] = CodeTable(code, self._table)
        return known
