"""Owns what passes make of the text of a module: the texts and their differences."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from magweld.packed_text import pack_text

_DUMP = re.compile(r"^// -----// IR Dump After (?P<name>.+) //----- //$", re.MULTILINE)
# A value's name is a number that changes with each operation before it.
_VALUE = re.compile(r"%[\w#:]+")
_CONTEXT = 3
# Of a pass that changes nearly everything a page shows the begin.
_MOST_LINES = 600
# Packed modules that a page takes for one graph, in characters.
_MOST_PACKED = 4 << 20


@dataclass(frozen=True)
class PassChange:
    """What a pass changed.

    Attributes:
        name: Of the pass, with its options; the first is that of the input.
        added: How many lines are new.
        removed: How many lines are gone.
        lines: ("+", "-", " " or "@", text) of lines that changed and of some around
            them; "@" tells the line where a part begins.
        left_out: How many such lines are not in `lines`.
        count: How many lines the module has after it.
        module: The module after it, as `pack_text` packs it; "" if a page has no room.
    """

    name: str
    added: int
    removed: int
    lines: tuple[tuple[str, str], ...]
    left_out: int
    count: int = 0
    module: str = ""


def pass_changes(text: str) -> list[PassChange]:
    """Return what each pass changed, in their order.

    Args:
        text: Modules, each below a line that names the pass it comes out of, as
            `mlir-opt --mlir-print-ir-after-change` writes them; the first is the input.
    """
    _, *parts = _DUMP.split(text)
    names, modules = parts[::2], [part.strip("\n").splitlines() for part in parts[1::2]]
    packed = list(_packed(parts[1::2]))
    captured = [
        PassChange(name, len(module), 0, (), 0, len(module), kept)
        for name, module, kept in zip(names[:1], modules, packed, strict=False)
    ]
    changed = zip(names[1:], pairwise(modules), packed[1:], strict=True)
    return [*captured, *(_change(name, *both, kept) for name, both, kept in changed)]


def _packed(modules: Sequence[str]) -> Iterator[str]:
    """Yield modules packed, nothing in place of those that there is no room for."""
    room = _MOST_PACKED
    for module in modules:
        packed = pack_text(module.strip("\n"))
        room -= len(packed)
        yield packed if room >= 0 else ""


def _change(
    name: str, before: Sequence[str], after: Sequence[str], module: str
) -> PassChange:
    lines = list(_difference(before, after))
    marks = [mark for mark, _ in lines]
    return PassChange(
        name,
        marks.count("+"),
        marks.count("-"),
        tuple(islice(lines, _MOST_LINES)),
        max(len(lines) - _MOST_LINES, 0),
        len(after),
        module,
    )


def _difference(
    before: Sequence[str], after: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield lines of a difference; lines that differ in names of values are alike."""
    alike = difflib.SequenceMatcher(
        None, [*map(_unnamed, before)], [*map(_unnamed, after)], autojunk=False
    )
    for group in alike.get_grouped_opcodes(_CONTEXT):
        yield "@", f"line {group[0][3] + 1}"
        for tag, first, last, start, end in group:
            if tag == "equal":
                yield from ((" ", line) for line in after[start:end])
                continue
            yield from (("-", line) for line in before[first:last])
            yield from (("+", line) for line in after[start:end])


def _unnamed(line: str) -> str:
    return _VALUE.sub("%", line)
