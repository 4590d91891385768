"""What a program prints, warns and logs is repeated by every hit."""

from __future__ import annotations

import functools
import logging
import sys
import warnings
import zlib
from io import StringIO
from typing import Any

import pytest
import torch

from magweld.frontend.traced import trace

logger = logging.getLogger("tests.frontend.outside")


@functools.lru_cache(None)
def warn_once(self: logging.Logger, text: str) -> None:
    self.warning(text)


class Speaker(logging.Logger):
    once = warn_once


def test_prints_are_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    def program(x: Any, name: str) -> Any:
        print("shape", x.shape, [name, 1.5], end="!\n")
        print(f"{name}", x.dtype, None, sep="-")
        return x + 1

    step = trace(program, backend="eager")
    printed = []
    for name in ("a", "a", "b"):
        step(torch.zeros(2), name)
        printed.append(capsys.readouterr().out)
        program(torch.zeros(2), name)
        assert printed[-1] == capsys.readouterr().out
    assert step.stats()["hits"] == 1
    assert step.stats()["breaks"] == 0


def test_prints_follow_a_redirection() -> None:
    step = trace(lambda x: (print("text"), x + 1)[1], backend="eager")
    for _ in range(2):
        before, sys.stdout = sys.stdout, StringIO()
        try:
            step(torch.zeros(2))
            assert sys.stdout.getvalue() == "text\n"
        finally:
            sys.stdout = before
    assert step.stats()["hits"] == 1


def test_prints_of_tensors_are_not_repeated(capsys: Any) -> None:
    step = trace(lambda x: print(x), backend="eager")
    for value in range(4):
        step(torch.full((2,), float(value)))
        assert capsys.readouterr().out == f"tensor([{value}., {value}.])\n"
    assert step.breaks


def warner(x: Any, level: int) -> Any:
    warnings.warn("careful", stacklevel=level)
    return x + 1


def test_warnings_are_repeated_at_their_place() -> None:
    def call(function: Any) -> list[tuple[Any, ...]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(torch.zeros(2), 1)
        return [(w.category, str(w.message), w.filename, w.lineno) for w in caught]

    step = trace(warner, backend="eager")
    expected = call(warner)
    assert len(expected) == 1
    assert call(step) == call(step) == expected
    assert step.stats()["hits"] == 1


def test_log_records_are_repeated(caplog: pytest.LogCaptureFixture) -> None:
    def program(x: Any, factor: float) -> Any:
        logger.warning("factor %s of %s", factor, tuple(x.shape))
        logger.debug("not important")
        return x * factor

    step = trace(program, backend="eager")
    found = []
    for function in (program, step, step, step):
        caplog.clear()
        function(torch.zeros(2), 2.0)
        found.append([(r.getMessage(), r.lineno, r.funcName) for r in caplog.records])
    assert len(found[0]) == 1
    assert found == found[:1] * 4
    assert step.stats()["hits"] >= 1
    assert step.stats()["breaks"] == 0
    logger.setLevel(logging.ERROR)
    try:
        caplog.clear()
        step(torch.zeros(2), 2.0)
        assert not caplog.records
    finally:
        logger.setLevel(logging.NOTSET)


def test_cached_methods(checker: Any) -> None:
    speaker = Speaker("tests.frontend.speaker")
    speaker.addHandler(logging.NullHandler())

    def program(x: Any) -> Any:
        speaker.once("again")
        return x + 1

    check = checker(program)
    assert check(torch.zeros(2)) == "record"
    assert check(torch.zeros(2)) == "hit"


def test_representations(checker: Any) -> None:
    check = checker(lambda x, n: (x + 1, repr(n), repr([n, "a"])))
    assert check(torch.zeros(2), 1) == "record"
    assert check(torch.zeros(2), 1) == "hit"
    assert check(torch.zeros(2), 2) == "record"


@pytest.mark.parametrize("way", ["print", "warn", "log"])
def test_an_effect_in_one_way_of_a_branch(way, capsys, caplog):
    def tell():
        if way == "print":
            print("negative")
        elif way == "warn":
            warnings.warn("negative", stacklevel=1)
        else:
            logging.getLogger("ways").warning("negative")

    def function(x, y):
        z = x * y
        if z.sum() > 0:
            z = z + 1.0
        else:
            tell()
            z = z - 1.0
        return z

    def told(call, x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = call(x, torch.ones(2))
        count = len(caught) + len(caplog.records) + capsys.readouterr().out.count("neg")
        caplog.clear()
        return result.tolist(), count

    traced = trace(function, backend="eager")
    for sign in (1.0, -1.0, 1.0, -1.0, 1.0):
        x = torch.full((2,), sign)
        assert told(traced, x) == told(function, x), traced.explain()


FACTOR = 2.0


@functools.lru_cache(maxsize=2)
def scaled(n: int) -> float:
    CALLED.append(n)
    return n * FACTOR


CALLED: list[int] = []


def test_functions_with_a_cache_are_asked_as_the_program_asks() -> None:
    """What they have forgotten they compute again, and they forget in eager's order."""
    orders = []
    for _ in range(2):
        CALLED.clear()
        scaled.cache_clear()
        call = trace(lambda x, n: x * scaled(n), backend="eager") if _ else None
        values = []
        for n in (1, 2, 1, 3, 1, 2, 2, 3, 1):
            x = torch.ones(1)
            values.append((x * scaled(n) if call is None else call(x, n)).item())
        orders.append((values, list(CALLED)))
    # A record whose number differs asks nothing.
    assert orders[0] == orders[1]


def test_a_cache_that_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: Any, n: int) -> Any:
        return x * scaled(n)

    scaled.cache_clear()
    step = trace(program, backend="eager")
    for factor in (2.0, 5.0):
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", factor)
        scaled.cache_clear()
        for _ in range(3):
            torch.testing.assert_close(
                step(torch.ones(1), 1), program(torch.ones(1), 1)
            )
    assert step.stats()["hits"] == 4


def test_what_a_function_with_a_cache_raises_comes_from_the_program() -> None:
    failing = False

    @functools.cache
    def answer() -> int:
        if failing:
            raise KeyError("no answer")
        return 3

    step = trace(lambda x: x + answer(), backend="eager")
    for _ in range(2):
        assert step(torch.zeros(1)).item() == 3
    failing = True
    answer.cache_clear()
    with pytest.raises(KeyError, match="no answer"):
        step(torch.zeros(1))
    failing = False
    assert step(torch.zeros(1)).item() == 3


class World:
    """State of a program, and what takes its texts and looks at the state."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.seen: list[Any] = []
        self.calls = 0
        self.total: Any = torch.zeros(1)
        self.failing = False

    def look(self, *text: Any) -> None:
        self.seen.append((list(self.log), self.calls, float(self.total)))
        if self.failing:
            raise RuntimeError("nobody takes this")


class Stream(StringIO):
    """A stream that looks at what the program has done so far."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def write(self, text: str) -> int:
        if text != "\n":
            self.world.look()
        return super().write(text)


class Handler(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def emit(self, record: logging.LogRecord) -> None:
        self.world.look()


def tell(way: str) -> None:
    if way == "print":
        print("text")
    elif way == "warn":
        warnings.warn("text", stacklevel=1)
    else:
        logging.getLogger("tests.frontend.order").warning("text")


def writes_around(world: World, x: Any, way: str) -> Any:
    world.log.append("before")
    world.total.add_(1)
    tell(way)
    world.log.append("after")
    world.calls += 1
    world.total.add_(1)
    return x * 2


def writes_memory_behind(world: World, x: Any, way: str) -> Any:
    tell(way)
    world.total.add_(1)
    return x * 2


def writes_in_a_callee(world: World, x: Any, way: str) -> Any:
    def inner() -> None:
        tell(way)
        world.calls += 1

    inner()
    inner()
    return x * world.calls


def has_a_break_behind(world: World, x: Any, way: str) -> Any:
    tell(way)
    world.calls += 1
    zlib.crc32(b"a break")
    world.calls += 1
    return x * world.calls


def catches(world: World, x: Any, way: str) -> Any:
    try:
        tell(way)
    except (RuntimeError, UserWarning):
        return x * 3
    return x * 2


def only_computes(world: World, x: Any, way: str) -> Any:
    x = x * 2
    tell(way)
    return x + 1


ORDERED = [
    writes_around,
    writes_memory_behind,
    writes_in_a_callee,
    has_a_break_behind,
    catches,
    only_computes,
]


def watched_calls(
    program: Any, way: str, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Return what calls give, and what is seen of them; some meet a failing outlet."""
    world = World()

    def bound(x: Any) -> Any:
        return program(world, x, way)

    function = trace(bound, backend="eager") if fast else bound
    logger = logging.getLogger("tests.frontend.order")
    handler = Handler(world)
    results: list[Any] = []
    for number in range(8):
        plain = number < 2 or number == 5
        world.failing = number in (4, 7)
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("always")
            patch.setattr(sys, "stderr", StringIO())
            patch.setattr(sys, "stdout", StringIO() if plain else Stream(world))
            patch.setattr(logger, "handlers", [logging.NullHandler()])
            patch.setattr(logger, "propagate", False)
            if not plain:
                patch.setattr(logger, "handlers", [handler])
                patch.setattr(warnings, "showwarning", world.look)
            if number == 6:
                warnings.simplefilter("error")
            try:
                results.append(function(torch.ones(1)).item())
            except (RuntimeError, UserWarning) as error:
                results.append(str(error))
        results.append((world.calls, list(world.log), world.total.item()))
    return results, world.seen, function


@pytest.mark.parametrize("way", ["print", "warn", "log"])
@pytest.mark.parametrize("program", ORDERED)
def test_who_takes_a_text_sees_what_was_done_before(
    program: Any, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = watched_calls(program, way, False, monkeypatch)
    found = watched_calls(program, way, True, monkeypatch)
    assert found[:2] == expected[:2]
    assert len(expected[1]) >= 4, "the outlet has looked"


def test_plain_outlets_cost_no_break(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    step = trace(lambda x: writes_memory_behind(world, x, "print"), backend="eager")
    monkeypatch.setattr(sys, "stdout", StringIO())
    for _ in range(4):
        step(torch.ones(1))
    assert step.stats()["hits"] == 3
    assert not step.breaks


@pytest.mark.parametrize("way", ["print", "warn", "log"])
def test_outlets_that_look_cost_no_break_where_nothing_is_written(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    world.total = 0.0  # what looks at tensors is observed
    step = trace(lambda x: only_computes(world, x, way), backend="eager")
    logger = logging.getLogger("tests.frontend.order")
    monkeypatch.setattr(sys, "stdout", Stream(world))
    monkeypatch.setattr(logger, "handlers", [Handler(world)])
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = world.look
        for _ in range(5):
            step(torch.ones(1))
    assert len(world.seen) == 5
    assert step.stats()["hits"] >= 3
    assert not step.breaks
