"""Checks continuations without torch; a script for any supported interpreter.

Usage: `python continuation_check.py REPOSITORY`; exits with 0 when all checks hold.
"""

from __future__ import annotations

import argparse
import collections
import json
import logging
import sys
import tarfile
import traceback
import types
from pathlib import Path

import interpreter_check


class Manager:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(("exit", kind))
        return kind is KeyError


class Base:
    def scaled(self, x, *, factor=2):
        return x * factor


class Derived(Base):
    def scaled(self, x, *more, factor=3, **named):
        first = super().scaled(x, factor=factor)

        def inner():
            return super(Derived, self).scaled(first) + len(more) + len(named)

        return inner()


def with_blocks(n):
    log = []
    with Manager(log) as one, Manager(log):
        for i in range(n):
            if i == 3:
                continue
            log.append((i, one is not None))
        {}["missing"]
    with Manager(log):
        return log
    return None


def handlers(n):
    seen = []
    try:
        try:
            seen.append(n)
            {}["a"]
        except (TypeError, KeyError) as error:
            seen.append(repr(error))
            seen.append(repr(sys.exc_info()[1]))
            try:
                [][1]
            except IndexError as second:
                seen.append(repr(second.__context__))
            seen.append(repr(sys.exc_info()[1]))
            raise
        finally:
            seen.append(repr(sys.exc_info()[1]))
    except LookupError:
        seen.append("lookup")
    else:
        seen.append("never")
    seen.append(sys.exc_info())
    return seen


def unbound(n):
    if n > 100:
        late = 1
    seen = [n]
    del n
    try:
        seen.append(n)
    except NameError as error:
        seen.append(type(error).__name__)
    try:
        seen.append(late)
    except NameError as error:
        seen.append(type(error).__name__)
    late = 5
    seen.append(late)
    return seen


def cells(n):
    total = 0

    def add(k):
        nonlocal total
        total += k * n
        return total

    for k in range(4):
        add(k)
    n = 7
    return add(1), total, sorted(locals()), [lambda v=v: v + n for v in (1, 2)][1]()


def methods(n):
    derived = Derived()
    text = "-".join([str(n), "x", str.format("{}", n), f"{n!r:>4}"])
    kept = collections.OrderedDict(a=n, **{"b": 2}, c=text.upper().lower())
    return derived.scaled(n), derived.scaled(1, 2, factor=4, z=5), kept, text


def nested_calls(n):
    def pick(*args, **named):
        return (*args, *named.values())

    return pick(n, pick(1, a=pick(*[2, 3], **{"b": 4})), c=n.bit_length()), [
        pick(i)[0] for i in range(n) if i
    ]


def loops(n):
    result = [n, n]
    while n:
        n -= 1
        for left, right in zip(range(3), "abc", strict=True):
            if left == 1:
                break
            result.append((n, left, right))
        else:
            result.append("else")
        if n == 1:
            continue
        result.append(n if n > 2 else -n)
    first, *rest = result
    assert rest
    return first, rest[1:3], not n


PROGRAMS = (
    with_blocks,
    handlers,
    unbound,
    cells,
    methods,
    nested_calls,
    loops,
)


def begin(continuations, function, args):
    """Return the form and the values of the state behind the first instructions."""
    from magweld.frontend.monitor.code_table import slot_names
    from magweld.frontend.segments.shape import Shape

    code = function.__code__
    names = slot_names(code)
    values = dict(zip(code.co_varnames, args, strict=False))
    for name in code.co_cellvars:
        content = (values[name],) if name in values else ()
        values[name] = types.CellType(*content)
    values |= dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    flow = continuations.flow
    resume = next(i for i in flow.instructions if i.opname == "RESUME")
    slots = tuple(i for i, name in enumerate(names) if name in values)
    entry = Shape(flow.following[resume.offset], slots, ())
    return entry, tuple(values[names[i]] for i in slots)


def stop_of(step, result):
    """Return where a continuation has stopped, None if it has returned a result."""
    from magweld.frontend.segments.shape import STOPPED, UNBOUND, Shape

    if type(result) is not tuple or not result or result[0] is not STOPPED:
        return None
    stop, found = step.stops[result[1]], result[2:]
    pairs = zip(stop.slots, found, strict=False)
    slots = tuple(slot for slot, value in pairs if value is not UNBOUND)
    values = tuple(value for value in found if value is not UNBOUND)
    return types.SimpleNamespace(
        shape=Shape(stop.offset, slots, stop.stack), values=values
    )


def run_in_steps(function, *args):
    """Run a function by one continuation for each instruction."""
    from magweld.frontend.monitor.code_table import CodeTables
    from magweld.frontend.segments.continuation import Continuations

    source, tables = Continuations(function.__code__), CodeTables({})
    entry, values = begin(source, function, args)
    steps = 0
    while True:
        try:
            step = source.make(entry, source.after(entry.offset))
        except ValueError:
            step = source.make(entry)
        tables.table(step.code)
        result = step.function(function.__globals__, values)(list(values))
        stopped = stop_of(step, result)
        if stopped is None:
            return result, steps
        entry, values = stopped.shape, stopped.values
        steps += 1


def check_steps():
    for function in PROGRAMS:
        for n in (0, 5):
            result, steps = run_in_steps(function, n)
            assert repr(result) == repr(function(n)), (function, result, function(n))
            # 3.14 may leave an empty place beside a special method, or none: no stop is
            # inside of `with` where a continuation begins before it.
            assert steps > (5 if function is with_blocks else 10), (function, steps)
            assert sys.exc_info() == (None, None, None)
    derived = interpreter_check.Derived([1, 2, 3])
    result, steps = run_in_steps(interpreter_check.exceptions, derived, {"k": 7})
    assert result == interpreter_check.exceptions(derived, {"k": 7})


def check_long_jumps():
    """Jumps that need prefixes, with a stop in the middle of the loop."""
    from magweld.frontend.segments.continuation import Continuations

    function = interpreter_check.make_long_jumps()
    source = Continuations(function.__code__)
    entry, values = begin(source, function, (None, None))
    middle = source.flow.instructions[len(source.flow.instructions) // 2].offset
    step = source.make(entry, [middle])
    first = stop_of(step, step.function({}, values)(list(values)))
    again = source.make(first.shape, source.after(middle))
    second = stop_of(again, again.function({}, first.values)(list(first.values)))
    rest = source.make(second.shape)
    result = rest.function({}, second.values)(list(second.values))
    assert result == function(None, None)


def states(source):
    """Yield the form of the state at every offset that has one."""
    from magweld.frontend.segments.liveness import KnownFrame, StackSlot, states_from

    flow, bound = source.flow, range(len(source.code.co_varnames))
    resume = next(i for i in flow.instructions if i.opname == "RESUME")
    start = KnownFrame((), frozenset(bound))
    found = states_from(flow, flow.following[resume.offset], start)
    for offset, state in found.items():
        if source.first(offset) == offset and StackSlot.EITHER not in state.stack:
            yield offset, source.shape(offset, state)


def functions_of(*modules):
    """Yield the code of all functions of modules."""
    for module in modules:
        source = Path(module.__file__).read_text(encoding="utf-8")
        work = [compile(source, module.__file__, "exec")]
        while work:
            code = work.pop()
            work += [c for c in code.co_consts if isinstance(c, types.CodeType)]
            yield code


def check_library():
    """Continuations of library functions have consistent stack depths."""
    from magweld.frontend.monitor.code_table import CodeTables
    from magweld.frontend.segments.continuation import Continuations

    made = 0
    for code in functions_of(argparse, json, logging, tarfile):
        try:
            source = Continuations(code)
        except ValueError:
            continue
        tables = CodeTables({})
        found = list(states(source))
        for offset, shape in found[len(found) // 2 :: len(found)]:
            tables.table(source.make(shape).code)
            try:
                step = source.make(shape, source.after(offset))
            except ValueError:
                continue
            tables.table(step.code)
            assert list(step.code.co_lines())
            made += 1
    assert made > 300, made


def check_calls():
    """A call can be replaced by that of another callable, inside of a handler."""
    from magweld.frontend.segments.continuation import Continuations
    from magweld.frontend.segments.liveness import StackSlot
    from magweld.frontend.segments.shape import Shape

    def program(path):
        before = 5
        try:
            value = before + open(path)  # the call that is replaced
        except LookupError as error:
            return "handled", str(error), before
        return value

    source = Continuations(program.__code__)
    call = next(
        i for i in source.flow.instructions if i.opname == "CALL" and i.arg == 1
    )
    shape = Shape(call.offset, (1,), (StackSlot.VALUE,))
    step = source.make(shape, calls=True)
    run = step.function(globals(), (5, 5, len))
    assert run([5, 5, lambda: 2]) == 7
    assert run([5, 5, {}.popitem])[0] == "handled"
    try:
        run([5, 5, [].__len__.__call__.__class__])
    except TypeError:
        lines = [f.lineno for f in traceback.extract_tb(sys.exc_info()[2])]
    assert lines[-1] == program.__code__.co_firstlineno + 3, lines


def check_segments():
    """A part of a function gives its state at the end, and variables may be unbound."""
    from magweld.frontend.segments.continuation import Continuations

    def program(n):
        total = 0
        for i in range(n):
            total += i
            last = i
        return total, last

    source = Continuations(program.__code__)
    entry, values = begin(source, program, (3,))
    end = next(i for i in source.flow.instructions if i.opname == "RETURN_VALUE")
    loop = next(i for i in source.flow.instructions if i.opname == "FOR_ITER")
    step = source.make(entry, [loop.offset])
    stopped = stop_of(step, step.function(globals(), values)(list(values)))
    assert stopped.values[0] == 0, stopped
    assert [program.__code__.co_varnames[s] for s in stopped.shape.slots] == ["total"]
    rest = source.make(stopped.shape, [end.offset])
    done = stop_of(rest, rest.function(globals(), stopped.values)(list(stopped.values)))
    assert done.values == ((3, 2),), done
    assert done.shape.slots == (), done


def main():
    """Run all checks."""
    if len(sys.argv) > 1:
        root = Path(sys.argv[1])
        interpreter_check.load_package("magweld", root / "python" / "magweld")
        interpreter_check.load_package("magweld.frontend", root / "frontend")
    checks = (
        check_segments,
        check_calls,
        check_steps,
        check_long_jumps,
        check_library,
    )
    for check in checks:
        check()
    assert "torch" not in sys.modules, "continuations work without torch"
    print("ok", sys.version_info[:2])


if __name__ == "__main__":
    main()
