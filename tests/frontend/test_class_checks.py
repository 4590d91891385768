"""Instance and subclass checks that run code of the user's, or read registries."""

from __future__ import annotations

import abc
import collections.abc
from collections.abc import Callable
from typing import Any

import pytest
import torch

from magweld.frontend import trace

Case = tuple[Callable[[Any], Any], Callable[[int], Any]]


def hooked(answer: Callable[[type], Any]) -> Any:
    """Return an abstract class with a hook of its own."""

    class Hooked(abc.ABC):  # noqa: B024
        @classmethod
        def __subclasshook__(cls, other: type) -> Any:
            return answer(other)

    return Hooked


def fresh() -> Any:
    return type("Fresh", (), {})


def hook_reads_state_and_is_asked_again() -> Case:
    state, obj = [True], fresh()()
    cls = hooked(lambda other: state[0])

    def prepare(number: int) -> None:
        state[0] = number % 2 == 0
        cls._abc_caches_clear()

    return lambda x: x * 2 if isinstance(obj, cls) else x, prepare


def hook_reads_state_after_it_has_answered() -> Case:
    state, obj = [True], fresh()()
    cls = hooked(lambda other: state[0])
    assert isinstance(obj, cls)

    def prepare(number: int) -> None:
        state[0] = number < 2
        if number == 4:
            cls._abc_caches_clear()

    return lambda x: x * 2 if isinstance(obj, cls) else x, prepare


def hook_writes_state() -> Case:
    log: list[Any] = []
    cls = hooked(lambda other: log.append(other) or True)

    def program(x: Any) -> Any:
        class Made:
            pass

        return x * 2 + len(log) if issubclass(Made, cls) else x

    return program, lambda number: None


def hook_is_replaced() -> Case:
    cls, obj = abc.ABCMeta("Plain", (), {}), fresh()()

    def prepare(number: int) -> None:
        if number == 2:
            cls.__subclasshook__ = classmethod(lambda cls, other: True)
            cls._abc_caches_clear()

    return lambda x: x * 2 if isinstance(obj, cls) else x, prepare


def hook_of_a_subclass() -> Case:
    state = [True]

    class Base(abc.ABC):  # noqa: B024
        pass

    class Derived(Base):
        @classmethod
        def __subclasshook__(cls, other: type) -> Any:
            return state[0]

    obj = fresh()()

    def prepare(number: int) -> None:
        state[0] = number % 2 == 0
        Base._abc_caches_clear()
        Derived._abc_caches_clear()

    return lambda x: x * 2 if isinstance(obj, (int, Base)) else x, prepare


def check_of_a_metaclass_asks_the_registry() -> Case:
    class Meta(abc.ABCMeta):
        def __instancecheck__(cls, instance: Any) -> bool:
            return super().__instancecheck__(instance)

    cls, kind = Meta("Checked", (), {}), fresh()
    obj = kind()

    def prepare(number: int) -> None:
        if number == 2:
            cls.register(kind)

    return lambda x: x * 2 if isinstance(obj, cls) else x, prepare


def check_of_a_metaclass_reads_state() -> Case:
    state = [True]

    class Meta(type):
        def __subclasscheck__(cls, other: type) -> bool:
            return state[0]

    cls = Meta("Checked", (), {})

    def prepare(number: int) -> None:
        state[0] = number % 2 == 0

    return lambda x: x * 2 if issubclass(int, cls) else x, prepare


def pattern_of_a_registered_sequence() -> Case:
    class Pair:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> int:
            return [3, 5][index]

    pair = Pair()

    def program(x: Any) -> Any:
        match pair:
            case [first, second]:
                return x * first * second
            case _:
                return x

    def prepare(number: int) -> None:
        if number == 2:
            collections.abc.Sequence.register(Pair)

    return program, prepare


CASES = [
    hook_reads_state_and_is_asked_again,
    hook_reads_state_after_it_has_answered,
    hook_writes_state,
    hook_is_replaced,
    hook_of_a_subclass,
    check_of_a_metaclass_asks_the_registry,
    check_of_a_metaclass_reads_state,
    pattern_of_a_registered_sequence,
]


def run(case: Callable[[], Case], wrap: Callable[[Any], Any]) -> list[float]:
    program, prepare = case()
    function, seen = wrap(program), []
    for number in range(6):
        prepare(number)
        seen.append(function(torch.ones(1)).item())
    return seen


@pytest.mark.parametrize("case", CASES)
def test_checks_answer_as_eager(case: Callable[[], Case]) -> None:
    eager = run(case, lambda program: program)
    assert len(set(eager)) > 1, "the answer changes"
    assert run(case, lambda program: trace(program, backend="eager")) == eager


def test_abstract_classes_of_the_library_are_asked_in_the_run() -> None:
    obj = fresh()()

    def program(x: Any) -> Any:
        if isinstance(obj, (collections.abc.Iterable, collections.abc.Mapping)):
            return x
        return x * 2 if isinstance([], collections.abc.Sequence) else x

    fast = trace(program, backend="eager")
    for _ in range(3):
        assert fast(torch.ones(1)).item() == 2.0
    assert fast.stats()["hits"] == 2
    assert not fast.breaks


def empty() -> Any:
    """Return an abstract class of which nothing is an instance."""

    class Empty(abc.ABC):  # noqa: B024
        pass

    return Empty


@pytest.mark.parametrize(("kind", "hits"), [(int, 3), (str, 4)])
def test_registrations_that_change_no_answer_change_no_hit(
    kind: type, hits: int
) -> None:
    cls = empty()

    def program(x: Any) -> Any:
        return x * 2 if isinstance(3, cls) else x

    fast = trace(program, backend="eager")
    for _ in range(2):
        assert fast(torch.ones(1)).item() == 1.0
    # As imports do.
    empty().register(fresh())
    cls.register(kind)
    for _ in range(3):
        assert fast(torch.ones(1)).item() == program(torch.ones(1)).item()
    assert fast.stats()["hits"] == hits


def test_no_guard_asks_code_of_the_users_behind_a_registration() -> None:
    asked: list[str] = []
    cls = empty()

    def ask(other: type) -> Any:
        asked.append(other.__name__)
        return NotImplemented

    def program(x: Any) -> Any:
        return x * 2 if isinstance(3, cls) else x

    fast = trace(program, backend="eager")
    for _ in range(2):
        fast(torch.ones(1))
    registered = hooked(ask)  # the registry holds it weakly
    cls.register(registered)
    asked.clear()
    assert fast(torch.ones(1)).item() == 1.0
    assert asked == ["int"], "once, as in eager"
