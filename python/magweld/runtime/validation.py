"""Owns the check that a program cannot touch memory it should not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from magweld.artifact import (
    IfStep,
    KernelStep,
    LoopStep,
    Place,
    Program,
    Step,
    TiledStep,
    WhileStep,
)
from magweld.runtime.control import check_control, control_scratch
from magweld.runtime.errors import ProgramError
from magweld.runtime.layout import Layout
from magweld.runtime.looping import check_loop, loop_scratch
from magweld.runtime.memory import ALIGNMENT
from magweld.runtime.tiling import check_tiles, scratch_bytes

_ALWAYS_DEFINED = (Place.INPUT, Place.CONSTANT)


def check_program(program: Program) -> Layout:
    """Check a program and return its layout.

    The checks cover what generated code cannot notice: pointers out of the arena,
    reads of bytes nobody wrote, two live values on the same bytes.

    Raises:
        ProgramError: With the id of the first rule that is broken.
    """
    return _check(Layout(program), check_parts(program))


def check_sizes(program: Program, checked: Layout) -> Layout:
    """Check a program for some sizes of a call and return its layout.

    Where the arena holds no size, places and the order of steps are as safe as those
    of the program with stand-ins, of which `program_at` has made this one.

    Args:
        program: The program.
        checked: The layout of the one with stand-ins, which was checked.

    Raises:
        ProgramError: With the id of the first rule that is broken.
    """
    base = checked.program
    is_same = program.arena_bytes == base.arena_bytes and not program.parts
    if base.arena_depends_on_sizes or not is_same:
        return check_program(program)
    layout = Layout(program, checked)
    _check_shapes(layout)
    _check_views(layout)
    _check_constants(layout)
    return layout


def check_parts(program: Program) -> list[Layout]:
    """Check the parts of a program and return their layouts.

    A part runs only parts in front of it.

    Raises:
        ProgramError: With the id of the first rule that is broken.
    """
    layouts: list[Layout] = []
    for number, part in enumerate(program.parts):
        if part.parts or part.constants or part.objects:
            raise ProgramError(
                "bad-part", "a part has parts, constants or code of its own"
            )
        before = program.parts[:number]
        whole = replace(part, constants=program.constants, parts=before)
        layouts.append(_check(Layout(whole), layouts))
    return layouts


def _check(layout: Layout, parts: Sequence[Layout]) -> Layout:
    program = layout.program
    _check_shapes(layout)
    _check_views(layout)
    _check_inputs(layout)
    _check_arena(layout)
    _check_constants(layout)
    defined = {i for i, v in enumerate(program.values) if v.place in _ALWAYS_DEFINED}
    for number, step in enumerate(program.steps):
        _check_step(layout, number, step, defined)
    _check_known(program, program.results, "results")
    _check_defined(layout, program.results, defined, "results")
    _check_overlaps(layout)
    for number, step in enumerate(program.steps):
        if isinstance(step, TiledStep):
            check_tiles(layout, step, parts)
            _check_scratch(layout, number, step, scratch_bytes(layout, step, parts))
        elif isinstance(step, LoopStep):
            check_loop(layout, step, parts)
            _check_scratch(layout, number, step, loop_scratch(step, parts))
        elif isinstance(step, IfStep | WhileStep):
            check_control(layout, step, parts)
            _check_scratch(layout, number, step, control_scratch(step, parts))
    return layout


def _check_shapes(layout: Layout) -> None:
    for value_id, signature in enumerate(layout.signatures):
        if any(extent < 0 for extent in signature.shape):
            raise ProgramError(
                "bad-shape", f"value {value_id} has extents {list(signature.shape)}"
            )


def _check_views(layout: Layout) -> None:
    for value_id in layout.values_in(Place.VIEW):
        signature = layout.signatures[value_id]
        root = layout.signatures[layout.roots[value_id]]
        same_count = signature.shape.numel() == root.shape.numel()
        if not same_count or signature.dtype != root.dtype:
            raise ProgramError(
                "bad-view",
                f"view {value_id} shows {signature} of {root}: elements differ",
            )


def _check_inputs(layout: Layout) -> None:
    values = layout.program.values
    indices = [values[i].index for i in layout.inputs]
    if indices != list(range(len(indices))):
        raise ProgramError("bad-inputs", f"argument numbers {indices} are not 0..n-1")


def _check_arena(layout: Layout) -> None:
    for value_id in layout.values_in(Place.ARENA):
        offset = layout.program.values[value_id].offset
        signature = layout.signatures[value_id]
        inside = 0 <= offset <= layout.program.arena_bytes - signature.nbytes
        if not inside or offset % signature.dtype.itemsize:
            raise ProgramError(
                "bad-offset",
                f"value {value_id} of {signature.nbytes} bytes at offset {offset} is "
                f"misaligned or outside an arena of {layout.program.arena_bytes} bytes",
            )


def _check_constants(layout: Layout) -> None:
    constants = layout.program.constants
    for value_id in layout.values_in(Place.CONSTANT):
        index = layout.program.values[value_id].index
        nbytes = layout.signatures[value_id].nbytes
        if not 0 <= index < len(constants) or len(constants[index]) != nbytes:
            raise ProgramError(
                "bad-constant", f"value {value_id} has no constant of {nbytes} bytes"
            )


def _check_step(layout: Layout, number: int, step: Step, defined: set[int]) -> None:
    where = f"step {number} ({type(step).__name__})"
    _check_known(layout.program, (*step.reads, *step.writes), where)
    _check_defined(layout, step.reads, defined, where)
    for value_id in step.writes:
        _check_write(layout, step, value_id, defined, where)
    defined.update(layout.roots[i] for i in step.writes)


def _check_known(program: Program, ids: Iterable[int], where: str) -> None:
    for value_id in ids:
        if not 0 <= value_id < len(program.values):
            raise ProgramError(
                "unknown-value", f"{where}: there is no value {value_id}"
            )


def _check_defined(
    layout: Layout, ids: Iterable[int], defined: set[int], where: str
) -> None:
    for value_id in ids:
        if layout.roots[value_id] not in defined:
            raise ProgramError(
                "undefined-value", f"{where}: value {value_id} is read before a write"
            )


def _check_write(
    layout: Layout, step: Step, value_id: int, defined: set[int], where: str
) -> None:
    place = layout.program.values[value_id].place
    root = layout.root_value(value_id).place
    if root in _ALWAYS_DEFINED:
        raise ProgramError(
            "read-only-value", f"{where}: value {value_id} is {root} and is written"
        )
    if root is not Place.ADOPTED:
        return
    # An adopted value has no bytes before its only writer has returned a tensor.
    if (
        isinstance(step, KernelStep | TiledStep | LoopStep | IfStep | WhileStep)
        or place is Place.VIEW
        or value_id in defined
    ):
        raise ProgramError(
            "bad-adoption",
            f"{where}: value {value_id} is adopted and cannot be written here",
        )


def _check_overlaps(layout: Layout) -> None:
    values, lifetimes = layout.program.values, layout.lifetimes
    arena = [i for i in lifetimes if values[i].place is Place.ARENA]
    live: list[int] = []
    for root in sorted(arena, key=lambda i: lifetimes[i][0]):
        live = [other for other in live if lifetimes[other][1] >= lifetimes[root][0]]
        for other in live:
            if _same_bytes(layout, root, other):
                raise ProgramError(
                    "overlap",
                    f"values {other} and {root} are alive together in step "
                    f"{lifetimes[root][0]} and share bytes of the arena",
                )
        live.append(root)


def _check_scratch(
    layout: Layout,
    number: int,
    step: TiledStep | LoopStep | IfStep | WhileStep,
    needed: int,
) -> None:
    where = f"step {number}: {needed} bytes at {step.scratch}"
    end = step.scratch + needed
    inside = 0 <= step.scratch and end <= layout.program.arena_bytes
    if step.scratch % ALIGNMENT or not inside:
        raise ProgramError("bad-scratch", f"{where} are misaligned or outside")
    values, lifetimes = layout.program.values, layout.lifetimes
    for root, (first, last) in lifetimes.items():
        if values[root].place is not Place.ARENA or not first <= number <= last:
            continue
        start = values[root].offset
        if start < end and step.scratch < start + layout.signatures[root].nbytes:
            raise ProgramError("bad-scratch", f"{where} are those of value {root}")


def _same_bytes(layout: Layout, first: int, second: int) -> bool:
    values, signatures = layout.program.values, layout.signatures
    a, b = values[first].offset, values[second].offset
    return a < b + signatures[second].nbytes and b < a + signatures[first].nbytes
