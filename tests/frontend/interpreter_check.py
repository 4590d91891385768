"""Runs the monitor without torch; a script for any supported interpreter.

Usage: `python interpreter_check.py REPOSITORY`; exits with 0 when all checks hold.
"""

from __future__ import annotations

import abc
import collections
import functools
import importlib.util
import itertools
import operator
import sys
import types
from pathlib import Path


def load_package(name, folder):
    """Import a package of the repository under its installed name."""
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


FACTOR = 3
VERSIONS = ((3, 11), (3, 12), (3, 13), (3, 14))
# Instructions that end a recording, and those of the interpreter's own frames.
UNTRACED = frozenset(
    (
        "ASYNC_GEN_WRAP BEFORE_ASYNC_WITH BUILD_INTERPOLATION BUILD_TEMPLATE"
        " CALL_INTRINSIC_2 CHECK_EG_MATCH END_ASYNC_FOR"
        " ENTER_EXECUTOR EXIT_INIT_CHECK GET_AITER GET_ANEXT GET_AWAITABLE IMPORT_STAR"
        " INTERPRETER_EXIT PREP_RERAISE_STAR PRINT_EXPR RESERVED"
    ).split()
)


class Base:
    kind = 5

    def __init__(self, values):
        self.values = values

    def total(self, extra, *rest, scale=1, **named):
        return sum(self.values) * scale + extra + len(rest) + named.get("k", 0)


class Derived(Base):
    def total(self, extra, *rest, **named):
        return super().total(extra, *rest, **named) + self.kind

    @property
    def first(self):
        return self.values[0]


def count(n):
    for i in range(n):
        received = yield i
        if received:
            return


def loops(derived, table):
    result = 0
    for value in count(4):
        result += value
    while result < 20:
        result += derived.first
        if result == 13:
            continue
    return result + table["k"]


def exceptions(derived, table):
    trace = []
    try:
        try:
            table["missing"]
        except KeyError:
            trace.append("key")
            raise
        finally:
            trace.append("finally")
    except (TypeError, LookupError):
        trace.append("lookup")
    else:
        trace.append("never")
    return trace


class Manager:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(kind)
        return kind is KeyError


def managed(derived, table):
    log = []
    with Manager(log) as manager, Manager(log):
        log.append(manager is not None)
        table["missing"]
    with Manager(log):
        log.append(all(v > 0 for v in derived.values))
        log.append(any(v > 2 for v in derived.values))
        return log, tuple(v + 1 for v in derived.values)


def comprehensions(derived, table):
    squares = [v * FACTOR for v in derived.values if v > 1]
    return squares, {k: v for k, v in table.items()}, {v % 2 for v in squares}


def calls(derived, table):
    named = derived.total(1, 2, 3, scale=2, k=4) + derived.total(*[1], **{"k": 2})
    return named + derived.total(*derived.values)


def closures(derived, table):
    n = 1

    def add(k):
        nonlocal n
        n += k
        return n

    return [add(k) for k in range(3)], n


def slices(derived, table):
    values = list(derived.values)
    values[1:2] = [7, 8]
    first, *rest = values
    return values[:2], first, rest, f"{first}-{values[-1]:03d}"


def patterns(derived, table):
    results = []
    subjects = [[1, 2], (1, 2, 3), {"k": 7, "j": 1}, derived, "abc", 5, None]
    for subject in [*subjects, table]:
        match subject:
            case [a, b]:
                results.append(a + b)
            case [first, *rest]:
                results.append((first, rest))
            case {"k": value, **more}:
                results.append((value, len(more)))
            case Derived(values=[x, *_], first=y):
                results.append((x, y))
            case "abc" | "def":
                results.append("text")
            case int(n) if n > 3:
                results.append(n)
            case _:
                results.append(None)
    return results


def class_statements(derived, table):
    scale = 2

    class Local(Base):
        factor: int = scale * FACTOR
        names = [len(name) for name in ("a", "bc")]

        def total(self, extra):
            return super().total(extra) * self.factor + scale

    class Abstract(abc.ABC):
        kind = table["k"]

        @abc.abstractmethod
        def missing(self): ...

    Local.added = 1
    return Local(derived.values).total(Local.added), Local.names, Abstract.kind


def resumed(derived, table):
    def totals():
        total = 0
        while True:
            try:
                total += yield total
            except ValueError:
                return total

    generator = totals()
    next(generator)
    for value in derived.values:
        generator.send(value)
    try:
        generator.throw(ValueError())
    except StopIteration as stop:
        return stop.value


def natives(derived, table):
    counts = collections.Counter(derived.values)
    groups = itertools.groupby(derived.values, key=lambda v: v > 1)
    made = collections.defaultdict(list)
    made["a"].append(functools.reduce(operator.add, derived.values))
    view = types.MappingProxyType(table)
    ordered = sorted(table.items(), key=operator.itemgetter(1))
    text = f"{derived.values!r:>12}|{view['k']}|{counts!s}"
    return text, [(k, list(g)) for k, g in groups], made, ordered, len(view)


class Compared:
    """Its comparisons give objects whose truth is a question of its own."""

    def __init__(self, answer):
        self.answer = answer

    def __lt__(self, other):
        return self.answer

    def __eq__(self, other):
        return self if isinstance(other, Compared) else NotImplemented

    def __bool__(self):
        return bool(self.answer)


def comparisons(derived, table):
    results = []
    for answer in ([], derived.values, 0, "text", None):
        one, other = Compared(answer), Compared([])
        if one < other:
            results.append(answer)
        while one == other:
            one = other
        results += [not one, one == 3, bool(one) and answer]
    return results


def variables(derived, table, *rest, **named):
    first, second = rest, named
    held = [(rest, named), (second, first)]
    third = second
    return held, third, lambda extra=first, *, key=second: (extra, key, third)


def texts(derived, table):
    class Text:
        def __format__(self, spec):
            return f"<{spec}>"

    text, width = Text(), 7
    return f"{text}{text:>{width}}{derived.values!r:>12}{'a'!s}{'b'!a}{table}"


def first_of(table):
    return table["k"]


TWIN = types.FunctionType(first_of.__code__.replace(), globals())


def calls_of_twins(twin, table):
    """Two functions whose code objects are equal, and are two."""
    return first_of({"k": 1}), twin(table)


def make_long_jumps():
    """Return a function whose jumps and names need EXTENDED_ARG prefixes."""
    lines = ["def long_jumps(derived, table):", "  x = 0", "  for i in range(3):"]
    lines += ["    if i != 1:"]
    lines += [f"      x = x + i + {1000 + k}" for k in range(400)]
    lines += ["  return x"]
    namespace = {}
    exec("\n".join(lines), namespace)
    return namespace["long_jumps"]


def make_session():
    from magweld.frontend.annotations.core import CORE
    from magweld.frontend.monitor.annotation import AnnotationTable
    from magweld.frontend.monitor.code_table import CodeTables
    from magweld.frontend.monitor.stack import FrameReader
    from magweld.frontend.session.instructions import INSTRUCTIONS
    from magweld.frontend.session.session import Session

    return Session(CodeTables(INSTRUCTIONS), FrameReader(), AnnotationTable(CORE))


def observe(function, *args):
    """Run a function observed; return its result and what was read, by path."""
    from magweld.frontend.monitor.events import event_source
    from magweld.frontend.state.paths import Paths

    session = make_session()
    result = session.run(event_source(), function, args, {})
    assert session.stopped is None, f"{function.__name__}: {session.stopped}"
    paths = Paths()
    return result, {paths.describe(e): e.value for e in session.graph.edges.values()}


def check_programs():
    programs = [loops, exceptions, comprehensions, calls, closures, slices]
    programs += [patterns, class_statements, resumed, natives, comparisons, texts]
    programs += [managed]
    for function in [*programs, make_long_jumps()]:
        expected = function(Derived([1, 2, 3]), {"k": 7})
        for _ in range(3):
            result, reads = observe(function, Derived([1, 2, 3]), {"k": 7})
            assert result == expected, function.__name__
    result, _ = observe(variables, Derived([1]), {"k": 7})
    expected = variables(Derived([1]), {"k": 7})
    assert result[:2] == expected[:2], result
    assert result[2]() == expected[2](), result
    return reads


def check_instructions():
    """The table knows which instructions this version has."""
    import dis

    from magweld.frontend.monitor import naming
    from magweld.frontend.session import instructions

    version = sys.version_info[:2]
    every = {n for known in VERSIONS for n in instructions.instructions_of(known)}
    # Pseudo-instructions are in no code.
    real = {name for name, number in dis.opmap.items() if number < 256}
    real = {naming.NAMES.get(name, name) for name in real}
    if version >= (3, 12):
        real.update(naming.INTRINSICS.values())
    if version >= (3, 14):
        real.add(naming.SUBSCRIPT)
    assert set(instructions.instructions_of(version)) == every & real, version
    new = {name for name in real - every - UNTRACED if "INSTRUMENTED" not in name}
    assert not new, new


def check_reads():
    _, reads = observe(comprehensions, Derived([1, 2, 3]), {"k": 7})
    assert reads["args[0].values[2]"] == 3, reads
    assert reads["len(args[0].values)"] == 3, reads
    assert reads[f"{__name__}.FACTOR"] == 3, reads
    assert reads["list(args[1])"] == ("k",), reads
    _, reads = observe(comparisons, Derived([1, 2, 3]), {"k": 7})
    assert reads["bool(args[0].values)"] is True, reads
    _, reads = observe(calls_of_twins, TWIN, {"k": 7})
    assert reads["args[1]['k']"] == 7, reads
    _, reads = observe(calls, Derived([1, 2, 3]), {"k": 7})
    assert reads["Derived.kind"] == 5, reads
    assert reads["Derived.super(Derived).total"] is Base.total, reads


def check_refusals():
    from magweld.frontend.monitor.events import event_source

    printing = functools.partial(print, end="", file=sys.stderr)
    for function in (printing, lambda: iter([]).__reduce__()):
        session = make_session()
        session.run(event_source(), function, (), {})
        assert session.stopped is not None, function


def check_tables():
    """Every function of these modules has consistent stack depths."""
    import argparse
    import asyncio
    import dataclasses
    import inspect
    import json
    import logging
    import tarfile
    import typing

    from magweld.frontend.monitor.code_table import CodeTables

    tables, work = CodeTables({}), []
    for module in (argparse, asyncio, dataclasses, inspect, json, logging, tarfile):
        source = Path(module.__file__).read_text(encoding="utf-8")
        work.append(compile(source, module.__file__, "exec"))
    work.append(compile(Path(typing.__file__).read_text(), "typing", "exec"))
    number = 0
    while work:
        code = work.pop()
        tables.table(code)
        number += 1
        work += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    assert number > 500, number


def check_lost_events():
    """A gap in the instructions of a frame ends the recording."""
    from magweld.frontend.monitor.events import event_source

    session = make_session()
    step = type(session).enter

    def forget(frame):
        observe = step(session, frame)
        if observe is None or frame.f_code is not loops.__code__:
            return observe
        seen = []

        def skip(frame, offset):
            seen.append(offset)
            if len(seen) != 9:
                observe(frame, offset)

        return skip

    session.enter = forget
    session.run(event_source(), loops, (Derived([1, 2]), {"k": 1}), {})
    assert session.stopped is not None
    assert session.stopped.id == "lost-events", session.stopped


def lifted(derived, n, m):
    """Moves two numbers through calls, containers, closures and branches."""
    pair = (n, m + 1)
    first, second = pair
    made = [k for k in (first, second)]
    total = lambda scale: derived.kind * scale + first  # noqa: E731

    def keep(*rest, last=0, **named):
        return rest[0] - last + named["k"]

    derived.count = keep(second, 5, last=n, k=total(2))
    if n > 3 and m is not None:
        derived.table = {"n": n * 2, "made": made[0] + made[-1]}
    return derived.count // 2, -n, pair[1:]


def check_lifting():
    """Expressions of lifted numbers give what the program gives for other numbers."""
    from magweld.frontend.expressions.expressions import topological
    from magweld.frontend.monitor.events import event_source
    from magweld.frontend.session.session import Session
    from magweld.frontend.state.nodes import Kind

    plain = make_session()
    parts = (plain.tables, plain.reader, plain.annotations)
    session = Session(*parts, wanted=frozenset({"args[1]", "args[2]"}))
    lifting = session.graph.lifting
    derived = Derived([1])
    result = session.run(event_source(), lifted, (derived, 7, 4), {})
    assert session.stopped is None, session.stopped
    assert not lifting.pinned, lifting.pinned
    other = Derived([1])
    expected = lifted(other, 8, 11)
    numbers = {("args", 1): 8, ("args", 2): 11}

    def value(obj, kind, key):
        found = lifting.at(obj, kind, key)
        known = {}
        for part in topological([found]):
            if hasattr(part, "source"):
                known[part] = numbers[part.source]
            else:
                operands = [known.get(o, o.value) for o in part.operands]
                known[part] = part.function(*operands)
        return known[found]

    assert value(result, Kind.INDEX, 0) == expected[0]
    assert value(result, Kind.INDEX, 1) == expected[1]
    assert value(result[2], Kind.INDEX, 0) == expected[2][0]
    assert value(vars(derived), Kind.ITEM, "count") == other.count
    assert value(derived.table, Kind.ITEM, "made") == other.table["made"]


def check_frames():
    from magweld.frontend.monitor.stack import is_supported

    assert is_supported()


def main():
    """Run all checks."""
    if len(sys.argv) > 1:
        root = Path(sys.argv[1])
        load_package("magweld", root / "python" / "magweld")
        load_package("magweld.frontend", root / "frontend")
    checks = (
        check_frames,
        check_instructions,
        check_tables,
        check_programs,
        check_reads,
        check_refusals,
        check_lost_events,
        check_lifting,
    )
    for check in checks:
        check()
    assert "torch" not in sys.modules, "the monitor works without torch"
    print("ok", sys.version_info[:2])


if __name__ == "__main__":
    main()
