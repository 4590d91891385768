"""Owns how expressions move on the value stack, in locals, and in containers."""

from __future__ import annotations

from types import CellType
from typing import Any

from magweld.frontend.expressions.expressions import Expression
from magweld.frontend.lifting.marks import FOLLOWED
from magweld.frontend.lifting.moves import Moves, frame_of, moved, moves_of
from magweld.frontend.lifting.shadow import Shadow, Step, address_of
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.state.contents import BOUNDS, builtin_base
from magweld.frontend.state.mro import find_in_mro
from magweld.frontend.state.nodes import Kind, slot_of
from magweld.frontend.state.values import is_scalar, same_scalar


def nothing(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """The values that are taken are not looked at."""
    step.operands.clear()


def always(shadow: Shadow, row: Row, stack: list[Any]) -> bool:
    """Where nothing has an expression nothing is to be followed."""
    return True


def load_local(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """LOAD_FAST and LOAD_FAST_CHECK."""
    shadow.push(stack, shadow.names.get(step.row.argval))


def each_part(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """LOAD_FAST_LOAD_FAST of 3.13 and its kin: the parts, one after the other."""
    parts, before = step.row.parts, step.before
    depths = [*(part.depth for part in parts[1:]), len(stack)]
    for part, depth in zip(parts, depths, strict=True):
        # What a later part takes away lies there no more.
        after = (stack if depth <= len(stack) else before)[:depth]
        if part.instruction.finish is not None:
            part.instruction.finish(shadow, Step(part, before, step.operands), after)
        before = after


def load_and_clear(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """LOAD_FAST_AND_CLEAR of 3.12."""
    shadow.push(stack, shadow.names.pop(step.row.argval, None))


def store_local(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """STORE_FAST."""
    expression = step.take(0)
    if expression is None:
        shadow.names.pop(step.row.argval, None)
    else:
        shadow.names[step.row.argval] = expression


def delete_local(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """DELETE_FAST."""
    shadow.names.pop(step.row.argval, None)


def copy(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """COPY."""
    shadow.push(stack, shadow.stack.get(len(step.before) - step.row.arg))


def swap(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """SWAP."""
    top, other = len(stack) - 1, len(stack) - step.row.arg
    pair = {other: step.take(0), top: shadow.stack.pop(other, None)}
    shadow.stack.update({p: e for p, e in pair.items() if e is not None})


def pin_now(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """YIELD_VALUE and SEND: the value leaves the frame, and may not come back."""
    for expression in step.operands.values():
        shadow.lifting.pin(expression)
    step.operands.clear()


def claim(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """LOAD_GLOBAL, LOAD_DEREF, LOAD_METHOD: the one read is the result.

    What a query of a tensor gave may take its place.
    """
    if step.answer is not None:
        shadow.push_answer(stack, step)
    elif len(step.reads) == 1 and same_scalar(step.reads[0][1].value, stack[-1]):
        shadow.push(stack, step.reads.pop()[1])


def claim_part(
    shadow: Shadow, step: Step, stack: list[Any], whole: Any, key: Any
) -> None:
    """Have the one read be the result, if no more of a container was read."""
    # All elements are read where an object tells the index by a method: the one that
    # is followed may be another, equal one.
    if builtin_base(whole) is dict or is_scalar(key):
        claim(shadow, step, stack)


def store(shadow: Shadow, step: Step, depth: int) -> None:
    """Put the operand `depth` below the top into the one slot that is written."""
    if len(step.stores) == 1 and not step.rewrites:
        shadow.lifting.put(step.stores[0], step.take(depth))


def store_deref(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """STORE_DEREF and STORE_GLOBAL."""
    store(shadow, step, 0)


def store_subscript(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """STORE_SUBSCR: value, container, key."""
    if shadow.beneath:
        return
    container, key = step.before[-2:]
    if type(container) is list and type(key) is int and step.peek(0) is None:
        store_element(shadow, step, container, key)
    else:
        store(shadow, step, 2)


def store_element(shadow: Shadow, step: Step, container: list[Any], key: int) -> None:
    """Follow `list[int] = value`: the other elements stay where they are."""
    lifting = shadow.lifting
    for slot, expression in step.reads:
        if slot[0] == id(container):
            lifting.put(slot, expression)
    step.forget(container)
    step.rewrites = [node for node in step.rewrites if node.obj is not container]
    index = key + len(container) if key < 0 else key
    lifting.put(slot_of(container, Kind.INDEX, index), step.take(2))


def build_sequence(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """BUILD_TUPLE and BUILD_LIST."""
    count = step.row.arg
    for index in range(count):
        expression = step.take(count - 1 - index)
        shadow.lifting.place(stack[-1], Kind.INDEX, index, expression)


def build_slice(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """BUILD_SLICE."""
    count = step.row.arg
    parts = [step.take(count - 1 - index) for index in range(count)]
    place_fields(shadow, stack[-1], parts)


def place_fields(shadow: Shadow, obj: Any, parts: list[Expression | None]) -> None:
    """Set the expressions of start, stop and step of a slice or range."""
    for descriptor, expression in zip(BOUNDS[type(obj)], parts, strict=False):
        shadow.lifting.place(obj, Kind.SLOT, descriptor, expression)


def build_map(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """BUILD_MAP: keys and values in turn; a lifted key is pinned."""
    count = step.row.arg
    for index in range(count):
        depth = 2 * (count - 1 - index)
        key = step.before[len(step.before) - 2 - depth]
        shadow.lifting.place(stack[-1], Kind.ITEM, key, step.take(depth))


def build_constant_map(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """BUILD_CONST_KEY_MAP: the values, on top a tuple of keys."""
    count = step.row.arg
    for index, key in enumerate(step.before[-1]):
        expression = step.take(count - index)
        shadow.lifting.place(stack[-1], Kind.ITEM, key, expression)


def append(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """LIST_APPEND in a comprehension."""
    target = stack[len(stack) - step.row.arg]
    lifting = shadow.lifting
    if lifting.loops is not None:
        lifting.loops.note_append(target)
    lifting.place(target, Kind.INDEX, len(target) - 1, step.take(0))


def map_add(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """MAP_ADD in a comprehension: key and value; a lifted key is pinned."""
    target = stack[len(stack) - step.row.arg]
    shadow.lifting.place(target, Kind.ITEM, step.before[-2], step.take(0))


def begin_spread(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """LIST_EXTEND, UNPACK_SEQUENCE: an iterator gives what nothing holds before."""
    step.advances = frame_of(stack[-1])
    if step.advances or type(stack[-1]) in FOLLOWED:
        step.moves = Moves(shadow.lifting)
        step.moves.call(tuple, (stack[-1],), {})


def extend(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """LIST_EXTEND: a display takes the elements of a sequence."""
    source, target = step.before[-1], stack[len(stack) - step.row.arg]
    if step.moves is not None:
        found = step.moves.items(step)
        for index, expression in enumerate(found, len(target) - len(found)):
            shadow.lifting.place(target, Kind.INDEX, index, expression)
    elif issubclass(type(source), (tuple, list)):
        first = len(target) - len(source)
        move_reads(shadow, step, source, target, range(first, len(target)))


def move_reads(
    shadow: Shadow, step: Step, source: Any, target: Any, places: range
) -> None:
    """Give elements of `target` the expressions that reads of `source` met."""
    for index, expression in step.take_elements(source).items():
        shadow.lifting.place(target, Kind.INDEX, places[index], expression)


def list_to_tuple(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """LIST_TO_TUPLE: the list is dropped."""
    moved(shadow, step, stack, tuple, step.before[-1])


def merge(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """DICT_MERGE and DICT_UPDATE: a display takes the entries of a dict."""
    source, target = step.before[-1], stack[len(stack) - step.row.arg]
    if type(source) is not dict:
        # Which of its entries lie there no more is not known.
        shadow.lifting.pin_content(target)
        return
    met = dict(step.reads)
    for key in source:
        slot = slot_of(source, Kind.ITEM, key)
        there = slot_of(target, Kind.ITEM, key)
        shadow.lifting.put(there, met.pop(slot, None))
    step.reads = list(met.items())


def unpack(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """UNPACK_SEQUENCE: the first element comes to lie on top."""
    source = step.before[-1]
    if step.moves is not None:
        found = enumerate(step.moves.items(step))
        elements = {index: one for index, one in found if one is not None}
    elif issubclass(type(source), (tuple, list)):
        elements = step.take_elements(source)
    else:
        return
    for index, expression in elements.items():
        shadow.stack[len(stack) - 1 - index] = expression


def make_cell(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """MAKE_CELL: a local variable moves into a cell."""
    expression = shadow.names.pop(step.row.argval, None)
    cell = shadow.observer.session.reader.slot(shadow.observer.frame, step.row.arg)
    if expression is not None and type(cell) is CellType:
        shadow.observer.session.graph.adopt(cell)
        shadow.lifting.place(cell, Kind.CELL, None, expression)
    else:
        shadow.lifting.pin(expression)


def get_iter(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """GET_ITER over a sequence: its elements keep their expressions."""
    source, lifting = step.before[-1], shadow.lifting
    loops = lifting.loops
    if type(source) is range:
        parts = tuple(lifting.at(source, Kind.SLOT, field) for field in BOUNDS[range])
        if loops is not None and any(part is not None for part in parts):
            loops.follow(stack[-1], source, parts)
            step.forget(source)
    elif loops is not None and loops.follow_rows(stack[-1]):
        return
    elif issubclass(type(source), (tuple, list)):
        if find_in_mro(type(source), "__iter__") in _PLAIN:
            lifting.follow(stack[-1], source)
            for slot, expression in step.reads:
                if slot[0] == id(source):
                    lifting.put(slot, expression)
            step.forget(source)
    else:
        moved(shadow, step, stack, iter, stack[-1])


_PLAIN = (tuple.__iter__, list.__iter__)


def begin_iteration(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """FOR_ITER: the state between two iterations can be seen now."""
    if shadow.lifting.loops is not None:
        shadow.lifting.loops.arrive(shadow, stack[-1])
    step.advances = frame_of(stack[-1])
    if not step.advances and shadow.lifting.followed(stack[-1]) is None:
        step.moves = moves_of(shadow.lifting, stack[-1])


def for_iter(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """FOR_ITER: the item lies above the iterator, unless that is exhausted."""
    loops, iterator = shadow.lifting.loops, step.before[-1]
    exhausted = len(stack) != len(step.before) + 1
    if loops is not None and exhausted:
        loops.close(address_of(iterator))
    elif loops is not None:
        shadow.push(stack, loops.item(address_of(iterator), stack[-1]))
    source = None if exhausted else shadow.lifting.followed(iterator)
    if source is not None:
        index = len(source) - iterator.__length_hint__() - 1
        shadow.push(stack, shadow.lifting.at(source, Kind.INDEX, index))
    elif len(step.given) == 1 and not exhausted:
        shadow.push(stack, step.given.pop()[1])
    elif step.moves is not None and step.moves.ends() == exhausted:
        step.moves.finish(shadow, step, stack)
