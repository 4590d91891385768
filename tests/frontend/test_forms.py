"""Compiled forms of one record: bounded by bytes, and no rotation compiles for ever."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, fx

from magweld.frontend import trace
from magweld.graphs.forms import COMPILE_AFTER, COMPILE_BESIDE, Forms, key_of
from magweld.graphs.lifted_graph import Example, LiftedGraph
from magweld.tiers import Race, TieredGraph, Verdict, Work


class Form:
    def __init__(self, held_bytes: int) -> None:
        self.held_bytes = held_bytes


def rotate(forms: Forms, keys: int, rounds: int, size: int) -> list[int]:
    """Return how many forms each round of a rotation makes."""
    made = []
    for _ in range(rounds):
        before = forms.made
        for key in range(keys):
            if forms.find(key) is None and forms.is_wanted(key):
                forms.add(key, Form(size))  # type: ignore[arg-type]
        made.append(forms.made - before)
    return made


def test_what_fits_is_made_once() -> None:
    forms = Forms(limit=1000)
    assert rotate(forms, keys=50, rounds=10, size=20) == [0, 0, 50, *[0] * 7]
    assert (len(forms), forms.dropped) == (50, 0)


def test_keys_that_do_not_come_back_are_noticed() -> None:
    forms = Forms(limit=1000)
    known = []
    for key in range(6000):
        forms.is_wanted(key)
        known.append(forms.are_new)
    # Few keys tell nothing. Later ones do, also once the first are forgotten.
    assert not known[20]
    assert all(known[40:])
    rotation = Forms(limit=1000)
    for call in range(400):
        rotation.is_wanted(call % 40)
    assert not rotation.are_new


def test_calls_of_which_none_comes_back_run_as_they_will() -> None:
    graph = fx.symbolic_trace(lambda x, n: x * n)
    example = Example.of([torch.ones(3)], [2.0])

    def compile_graph(module: Any, tensors: list[Tensor]) -> Any:
        raise AssertionError("no values come back")

    lifted = LiftedGraph(graph, 1, compile_graph, example)
    final = []
    for number in range(60):
        assert torch.equal(lifted(torch.ones(3), float(number)), torch.ones(3) * number)
        final.append(lifted.was_final)
    assert not any(final[:20])
    assert all(final[40:])


def test_what_does_not_fit_is_made_less_and_less() -> None:
    forms = Forms(limit=1000)
    made = rotate(forms, keys=60, rounds=400, size=20)
    assert sum(made[:50]) < 600
    # Each key has to be used twice as often each time it was dropped.
    assert sum(made[200:]) < 200
    assert len(forms) == 50


def test_what_is_used_often_stays() -> None:
    forms = Forms(limit=100)
    for key in ("often", "b", "c", "d", "e"):
        for _ in range(6):
            for one in ("often", key):
                if forms.find(one) is None and forms.is_wanted(one):
                    forms.add(one, Form(40))  # type: ignore[arg-type]
    assert forms.find("often") is not None
    assert forms.dropped == 3


def test_what_is_wanted_is_made_at_the_next_use() -> None:
    forms = Forms(limit=100)
    forms.want("a")
    assert forms.is_wanted("a", after=64)
    assert not forms.is_wanted("b", after=64)


def test_of_many_keys_those_that_are_used_often_get_a_form() -> None:
    forms = Forms(limit=1000)
    assert not any(forms.is_wanted(n % 50, after=3, most=16) for n in range(300))
    assert (forms.kinds, forms.uses) == (50, 300)
    wanted = [forms.is_wanted("often", after=3, most=16) for _ in range(40)]
    assert wanted.index(True) == 19  # the 20th of 320 uses
    forms.want(7)
    assert forms.is_wanted(7, after=3, most=16)


def test_one_form_is_kept_however_large_it_is() -> None:
    forms = Forms(limit=10)
    for key in "ab":
        while forms.find(key) is None:
            if forms.is_wanted(key):
                forms.add(key, Form(1000))  # type: ignore[arg-type]
    assert forms.find("a") is None
    assert forms.find("b") is not None


def layers(x: Tensor) -> Tensor:
    return torch.relu(x @ torch.ones(4, 4)).softmax(-1) * x.shape[0]


def counting(compiled: list[int]) -> Any:
    def compile_(graph: fx.GraphModule, inputs: list[Tensor]) -> Any:
        compiled.append(inputs[0].shape[0])
        return graph.forward

    return compile_


def test_many_sizes_in_turn_are_compiled_once_each() -> None:
    compiled: list[int] = []
    fast = trace(layers, backend=counting(compiled))
    sizes = range(20, 52)
    for _ in range(8):
        for size in sizes:
            x = torch.randn(size, 4)
            torch.testing.assert_close(fast(x), layers(x))
    assert len(compiled) <= len(sizes) + 2
    stats = fast.stats()
    assert stats["compilations"] == len(compiled)
    assert stats["evictions"] == 0
    assert 0 < stats["torch_hits"] < stats["hits"]


def test_sizes_that_do_not_fit_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGWELD_FORMS_BYTES", str(4 << 20))
    compiled: list[int] = []
    fast = trace(layers, backend=counting(compiled))
    for _ in range(60):
        for size in range(20, 28):
            x = torch.randn(size, 4)
            torch.testing.assert_close(fast(x), layers(x))
    stats = fast.stats()
    assert stats["evictions"] > 0
    assert len(compiled) < 80
    assert "MAGWELD_FORMS_BYTES" in fast.explain()


def test_records_without_changing_sizes_are_counted() -> None:
    compiled: list[int] = []
    fast = trace(layers, backend=counting(compiled), dynamic=False)
    for _ in range(3):
        fast(torch.ones(2, 4))
    stats = fast.stats()
    assert (stats["compilations"], stats["torch_hits"]) == (1, 0)
    assert stats["compile_seconds"] > 0
    through_torch = trace(layers, backend="eager")
    for _ in range(3):
        through_torch(torch.ones(2, 4))
    assert through_torch.stats()["torch_hits"] == through_torch.stats()["hits"] == 2


class ForAllSizes:
    """Stands for a program that answers all sizes; it has been timed against torch."""

    tiers = ()
    reason = ""
    is_whole = True
    grows = False
    program_seconds = 0.0

    def __init__(self, run: Any, verdict: Verdict) -> None:
        self._tier = TieredGraph(run)
        compiled: Any = run
        self._tier.compile(lambda: Work(lambda: compiled, Race(known=verdict)))

    def find(self, key: object, tensors: object, numbers: object) -> TieredGraph:
        """Return it for any call."""
        return self._tier

    def runtime_tensors(self, key: object) -> None:
        """Have it asked for each call."""


@pytest.mark.parametrize(
    ("ours", "compiling", "is_whole", "uses"),
    [
        (2.0, 0.0, True, COMPILE_AFTER),
        # It may take 0.88 seconds.
        (1.1, 23.9, True, 200),
        # It may save a twentieth even where it is not expected to.
        (2.0, 9.0, True, 180),
        (1.6, 3.9, False, 20),
        (0.5, 0.0, True, COMPILE_BESIDE),
        (0.5, 9.0, True, 90),
        (0.5, 25.0, False, 100),
    ],
)
def test_sizes_get_a_program_once_it_may_have_saved_what_it_takes_to_compile(
    ours: float, compiling: float, is_whole: bool, uses: int
) -> None:
    compiled: list[int] = []
    given = torch.randn(12, 4)
    module = fx.symbolic_trace(lambda x: (torch.relu(x),))
    example = Example.of([given], ())
    graph = LiftedGraph(module, 0, counting(compiled), example)
    verdict = Verdict(compiled_seconds=ours, torch_seconds=1.0)
    sized = ForAllSizes(module.forward, verdict)
    sized.program_seconds, sized.is_whole = compiling, is_whole
    graph.all_sizes = sized  # type: ignore[assignment]
    for _ in range(uses - 1):
        graph(given)
    assert not compiled
    (result,) = graph(given)
    assert compiled == [12]
    torch.testing.assert_close(result, torch.relu(given))


def test_many_sizes_get_programs_once_the_first_of_them_has_won() -> None:
    asked: list[TieredGraph] = []
    now = [0.0]

    def taking(seconds: float) -> Any:
        def run(x: Tensor) -> Any:
            now[0] += seconds
            return (torch.relu(x),)

        return run

    def compile_graph(module: Any, tensors: list[Tensor]) -> TieredGraph:
        tier = TieredGraph(taking(2.0))
        race = Race(clock=lambda: now[0])
        tier.compile(lambda: Work(lambda: taking(1.0), race))
        asked.append(tier)
        return tier

    module = fx.symbolic_trace(lambda x: (torch.relu(x),))
    graph = LiftedGraph(module, 0, compile_graph, Example.of([torch.ones(9)], ()))
    verdict = Verdict(compiled_seconds=2.0, torch_seconds=1.0)
    sized = ForAllSizes(module.forward, verdict)
    sized.grows = True
    graph.all_sizes = sized  # type: ignore[assignment]
    for _ in range(2 * COMPILE_AFTER):
        for size in range(2, 8):
            graph(torch.ones(size))
    assert len(asked) == 1
    # Nor does one that loses against eager as long as nothing tells that it helps.
    assert not graph.want_own(key_of([torch.ones(5)], ()), (2.0, 1.0), 1000)
    while not asked[0].is_decided:
        graph(torch.ones(2))
    for size in range(2, 8):
        graph(torch.ones(size))
    assert len(asked) == 6
    # They need no times of their own.
    assert all(each.is_decided for each in asked)


@pytest.mark.parametrize(
    ("own", "uses"), [(0.5, 10), (1.0, 2 * COMPILE_BESIDE), (0.99, 100)]
)
def test_programs_for_sizes_tell_what_others_save(own: float, uses: int) -> None:
    """Torch takes a second, the program for all sizes two, compiling five or more."""
    compiled: list[int] = []

    def compile_graph(module: Any, tensors: list[Tensor]) -> TieredGraph:
        compiled.append(tensors[0].shape[0])
        tier = TieredGraph(module.forward)
        race = Race(known=Verdict(compiled_seconds=own, torch_seconds=1.0))
        tier.compile(lambda: Work(lambda: module.forward, race))
        return tier

    module = fx.symbolic_trace(lambda x: (torch.relu(x),))
    graph = LiftedGraph(module, 0, compile_graph, Example.of([torch.ones(9)], ()))
    sized = ForAllSizes(
        module.forward, Verdict(compiled_seconds=2.0, torch_seconds=1.0)
    )
    graph.all_sizes = sized  # type: ignore[assignment]
    for _ in range(COMPILE_AFTER):
        graph(torch.ones(2))
    assert compiled == [2]
    sized.program_seconds = 0.05 * uses if own > 0.9 else 0.5 * uses
    for _ in range(uses - 1):
        graph(torch.ones(3))
    assert compiled == [2]
    graph(torch.ones(3))
    assert compiled == [2, 3]


def test_sizes_that_lose_against_eager_get_a_program_once_it_may_have_paid() -> None:
    module = fx.symbolic_trace(lambda x: (torch.relu(x),))
    compiled: list[int] = []
    example = Example.of([torch.ones(9)], ())
    graph = LiftedGraph(module, 0, counting(compiled), example)
    sized = ForAllSizes(
        module.forward, Verdict(compiled_seconds=1.0, torch_seconds=9.0)
    )
    sized.program_seconds = 20.0
    graph.all_sizes = sized  # type: ignore[assignment]
    key = key_of([torch.ones(5)], ())
    # It may take 0.8 seconds.
    assert not graph.want_own(key, (1.0, 0.9), 199)
    graph(torch.ones(5))
    assert not compiled
    assert graph.want_own(key, (1.0, 0.9), 201)
    graph(torch.ones(5))
    assert compiled == [5]


def test_sizes_that_guards_fix_tell_no_calls_apart() -> None:
    compiled: list[int] = []
    module = fx.symbolic_trace(lambda x, y: (x * y.sum(),))
    example = Example.of([torch.ones(3), torch.ones(2)], ())
    graph = LiftedGraph(module, 0, counting(compiled), example, varying=(0,))
    for size in range(2, 2 + COMPILE_AFTER):
        graph(torch.ones(3), torch.ones(size))
    assert compiled == [3]


def test_parameters_have_no_sizes_that_may_be_others() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    fast = trace(model, backend="eager")
    with torch.no_grad():
        for size in (5, 6, 7):
            fast(torch.ones(size, 3))
    (lifted,) = [record for record in fast.records if record.lifted is not None]
    tensors = [
        path for path in lifted.input_paths if "weight" in path or "bias" in path
    ]
    assert len(tensors) == 4
    varying = lifted.lifted._varying
    assert [lifted.input_paths[number] for number in varying] == ["args[0]"]
