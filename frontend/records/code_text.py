"""Owns the text of what a record runs beside its graph: guards, effects, continuations.

It is for readers: constants have names in place of numbers, and a comment before each
part shows the user's line that it is from.
"""

from __future__ import annotations

import ast
import dis
import linecache
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from torch import fx

from magweld.frontend.guards.guard import number_at, shown
from magweld.frontend.records.record import Record
from magweld.frontend.segments.continuation import Sources
from magweld.frontend.segments.shape import Continuation, FrameForm
from magweld.frontend.segments.steps import steps_behind
from magweld.frontend.state.steps import (
    Constant,
    Fetched,
    HitStep,
    Made,
    Make,
    Output,
    Source,
)
from magweld.frontend.state.values import is_scalar
from magweld.graphs.places import place_of

_NAMED: Final = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    tuple,
)
# Longer texts of constants are cut.
_LONGEST: Final = 200


def guards_text(record: Record) -> str:
    """Return the function that tests the guards and fetches what a hit needs."""
    program = record.program
    constants = program.constants
    tree = ast.parse(program.text)
    names = _Readable(constants)
    (function,) = names.visit(tree).body
    groups: dict[int, list[str]] = {}
    for statement in function.body:
        text = ast.unparse(statement)
        groups.setdefault(number_at(statement.lineno), []).append(text)
    lines = [f"def guards({ast.unparse(function.args)}):"]
    where = ""
    for number, guard in enumerate(program.guards):
        if guard.where != where:
            where = guard.where
            lines += _indented(_place(where))
        lines.append(f"    # {guard.category}: {guard.path} {guard.expected}")
        lines += _indented(groups.get(number, ()))
    lines += ["    # all of them hold", *_indented(groups[len(program.guards)])]
    return "\n".join([*_legend(names.unnamed), *lines])


class _Readable(ast.NodeTransformer):
    """Replaces the names of constants by texts of them, where there are short ones."""

    def __init__(self, constants: Mapping[str, Any]) -> None:
        self.unnamed: dict[str, Any] = {}
        self._constants = constants

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id not in self._constants:
            return node
        value = self._constants[node.id]
        if isinstance(value, _NAMED) or is_scalar(value):
            return ast.Name(_cut(shown(value)), node.ctx)
        self.unnamed[node.id] = value
        return node


def _legend(unnamed: Mapping[str, Any]) -> list[str]:
    return [f"{name} = ...  # {_cut(shown(value))}" for name, value in unnamed.items()]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def effects_text(record: Record) -> str:
    """Return what a hit makes and writes behind its graph, as statements."""
    mock = record.mock
    lines = [f"def side_effects(fetched, outputs):  # {len(mock.steps)} steps"]
    lines += _indented(_outputs(record))
    where = ""
    for step in mock.steps:
        place = "" if isinstance(step, Make) else step.where
        if place != where:
            where = place
            lines += _indented(_place(where))
        lines.append(f"    {_step_text(step)}")
    lines.append(f"    return {_source_text(mock.result)}")
    return "\n".join(lines)


def _outputs(record: Record) -> Iterator[str]:
    """Yield a comment for each output of the graph: its node and the user's line."""
    (output,) = (node for node in record.graph.graph.nodes if node.op == "output")
    for number, node in enumerate(output.args[0]):
        yield f"# outputs[{number}] is {node}"
        where = place_of(node) if isinstance(node, fx.Node) else ""
        if where:
            yield from _place(where)


def _step_text(step: HitStep) -> str:
    parts = [_source_text(part) for part in step.parts]
    if step.packed:
        parts = [f"[{', '.join(parts)}]"]
    if isinstance(step, Make):
        return (
            f"made_{step.index} = {_function_text(step.function)}({', '.join(parts)})"
        )
    everything = ", ".join([_source_text(step.target), *parts])
    return f"{_function_text(step.function)}({everything})"


def _function_text(function: Callable[..., Any]) -> str:
    if isinstance(function, types.MethodWrapperType):
        return f"{shown(function.__self__)}.{function.__name__}"
    return shown(function)


def _source_text(source: Source) -> str:
    match source:
        case Constant(value):
            return _cut(shown(value))
        case Fetched(index, path):
            return _cut(path) or f"fetched[{index}]"
        case Output(index):
            return f"outputs[{index}]"
        case Made(index):
            return f"made_{index}"


def resume_text(record: Record) -> str:
    """Return the code that goes on where the record leaves the program.

    For each frame, the outermost first, it is the bytecode of a function: it takes the
    state of the frame, runs one instruction, and gives the state behind it.
    """
    form = record.ends
    if form is None:
        return "# The record leads to the end of the program: nothing is resumed."
    lines = [f"# The program is left before {form.where}."]
    sources, innermost = Sources(), form.frames[-1]
    for frame in form.frames:
        lines += ["", *_frame_text(sources, frame, frame is not innermost)]
    return "\n".join(lines)


def _frame_text(sources: Sources, frame: FrameForm, calls: bool) -> Iterator[str]:
    try:
        made = steps_behind(sources, frame, calls)
    except ValueError as error:
        made = sources.make(frame.code, frame.shape, (), calls)
        yield f"# {error}: it goes on to the end of the function."
    values = [*frame.names(), *(["the frame inside"] if calls else ())]
    taken = made.code.co_varnames[: len(values)]
    yield f"def {frame.code.co_qualname}({made.code.co_varnames[0]}):"
    yield f"    # {', '.join(taken)} come out of the list that is given."
    given = zip(taken, values, strict=True)
    yield from (f"    # {name} is {value}" for name, value in given if name != value)
    yield from _indented(_bytecode(made))


def _bytecode(made: Continuation) -> Iterator[str]:
    """Yield what is new in the code of a continuation, and the part that runs."""
    shift, end = made.shift, made.shift + len(made.origin.co_code)
    stops = [stop.offset + shift for stop in made.stops]
    places = [made.entry.offset + shift, *stops]
    first, last = min(places), max(places) if stops else end
    title = ""
    for one in dis.get_instructions(made.code):
        if shift <= one.offset < end and not first <= one.offset <= last:
            continue
        before, title = title, _title(made, one)
        if title != before:
            yield title
        if one.offset in stops:
            yield f"{one.offset:>6} (stops here)"
        else:
            yield f"{one.offset:>6} {one.opname:<24} {one.argrepr}".rstrip()


def _title(made: Continuation, one: dis.Instruction) -> str:
    """Return a comment on what an instruction belongs to."""
    if one.offset < made.shift:
        return "# The state is put in place."
    if one.offset >= made.shift + len(made.origin.co_code):
        return "# The state is packed."
    line = one.positions.lineno if one.positions else None
    return "".join(_place(f"{made.origin.co_filename}:{line}"))


def _place(where: str) -> list[str]:
    """Return a comment with the user's line at "file:line", none if that is ""."""
    file, _, line = where.rpartition(":")
    if not line.isdigit():
        return []
    return [f"# {where}: {linecache.getline(file, int(line)).strip()}"]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for text in lines for line in text.splitlines()]
