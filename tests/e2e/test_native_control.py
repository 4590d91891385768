"""Branches and loops on tensor values as native code: results, identities, threads."""

from __future__ import annotations

import _thread
import copy
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import magweld
from magweld.api import ControlledGraph, compile_graph
from magweld.artifact import WhileStep
from magweld.diagnostics import UnsupportedError
from magweld.frontend.traced import trace


def deep(x):
    """Return what is too far from the inputs for a guard."""
    for _ in range(60):
        x = x * 1.01
    return x


def newton(a):
    h = deep(a)
    x = h
    while (x * x - h).abs().max() > 1e-3:
        x = 0.5 * (x + h / x)
    return x


def early_exit(x):
    h = deep(x)
    steps = torch.zeros((), dtype=torch.int64)
    while True:
        h = torch.tanh(h * 0.9)
        steps = steps + 1
        if h.abs().max() < 0.1:
            break
    return h, steps


def if_in_while(x):
    h = deep(x)
    k = h
    while h.abs().max() > 2:
        if h.mean() > 0:
            h = (h * 0.5 - 0.01).tanh() * 1.5
        else:
            h = h * 0.7 + k * 0.001
    return h, k


def while_in_if(x):
    h = deep(x)
    if h.sum() > 0:
        while h.norm() > 1:
            h = h * 0.5 - h.mean() * 0.001
    else:
        h = h.exp() + 1
    return h * 2


def while_in_while(x):
    h = deep(x)
    total = h * 0
    while h.abs().max() > 1:
        inner = h
        while inner.abs().max() > 0.5:
            inner = inner * 0.5
        total = total + inner
        h = h * 0.6 - inner * 0.01
    return total, h


def products(x):
    h = deep(x)
    while h.norm() > 1:
        h = (h @ h.T).softmax(-1) @ h * 0.3
    return h


def two_values(x):
    h = deep(x)
    old = h * 0
    while (h - old).abs().max() > 0.01:
        old, h = h, h * 0.5 + 0.1
    return h, old


def one_arm(x):
    h = deep(x)
    if h.sum() > 0:
        h = h * 2 + 1
    return h


def flags(x):
    h = deep(x)
    seen = h > 0
    while h.abs().max() > 0.5:
        h = h * 0.5
        seen = seen & (h > 0.2)
    return seen, h


PROGRAMS = [
    newton,
    early_exit,
    if_in_while,
    while_in_if,
    while_in_while,
    products,
    two_values,
    one_arm,
    flags,
]


def inputs():
    torch.manual_seed(3)
    yield torch.rand(8, 16) + 0.5
    for scale in (1.0, -1.0, 5.0, 1e-4, -3.0):
        yield (torch.randn(8, 16) + 0.2).abs() * scale


def compiled_of(program):
    traced = trace(program)
    with torch.no_grad():
        traced(next(inputs()))
    (record,) = traced.records
    assert record.breaks == []
    graph = record.graph
    return compile_graph(graph, [next(inputs())])


def same_objects(tensors):
    return [[one is other for other in tensors] for one in tensors]


def results_of(program, x):
    found = program(x)
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.sample(3)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_results_are_those_of_eager(program):
    compiled = compiled_of(program)
    assert not isinstance(compiled, ControlledGraph), compiled.report()["control"]
    kinds = compiled.program.step_kinds()
    assert {"if", "while"} & set(kinds)
    with torch.no_grad():
        for x in inputs():
            if program is newton:
                x = x.abs() + 0.1
            mine, theirs = results_of(compiled, x), results_of(program, x)
            for one, other in zip(mine, theirs, strict=True):
                torch.testing.assert_close(one, other)
                assert one.stride() == other.stride()
            assert same_objects([*mine, x]) == same_objects([*theirs, x])


def view_or_product(x):
    k = deep(x) * 2
    v = k.view(16, 8)
    if v.sum() > 0:
        v = v * 3 + k.sum()
    return v


def view_in_front(x):
    k = deep(x) * 2
    v = k.view(16, 8)
    while v.abs().max() > 1:
        v = v * 0.5 - k.mean() * 0.01
    return v


@pytest.mark.sample(1)
@pytest.mark.parametrize("program", [view_or_product, view_in_front])
def test_a_view_that_may_be_a_result_stays_one(program):
    compiled = compiled_of(program)
    assert "control-view" in compiled.report()["control"][0]
    with torch.no_grad():
        for x in inputs():
            mine, theirs = results_of(compiled, x), results_of(program, x)
            torch.testing.assert_close(mine, theirs)
            assert [t._is_view() for t in mine] == [t._is_view() for t in theirs]


def test_operators_behind_all_that_is_read():
    traced = trace(one_arm)
    x = next(inputs())
    with torch.no_grad():
        traced(x)
        graph = copy.deepcopy(traced.records[0].graph)
        (end,) = graph.graph.find_nodes(op="output")
        with graph.graph.inserting_before(end):
            total = graph.graph.call_method("sum", (end.all_input_nodes[-1],))
            graph.graph.call_method("gt", (total, 1))
        graph.recompile()
        compiled = compile_graph(graph, [x])
        assert "if" in compiled.program.step_kinds()
        for x in inputs():
            pairs = zip(results_of(compiled, x), results_of(one_arm, x), strict=True)
            for one, other in pairs:
                torch.testing.assert_close(one, other)


def test_an_artifact_has_them(tmp_path):
    x = next(inputs())
    artifact = magweld.compile(if_in_while, (x,))
    artifact.save(tmp_path / "model")
    loaded = magweld.load(tmp_path / "model")
    for one in (artifact, loaded):
        kinds = {type(step) for step in one.program.steps}
        assert WhileStep in kinds
        for x in inputs():
            mine, theirs = one(x), if_in_while(x)
            torch.testing.assert_close(mine, theirs)
            assert same_objects(mine) == same_objects(theirs)


def test_an_artifact_for_a_gpu_has_none():
    with pytest.raises(UnsupportedError, match="artifact-control"):
        magweld.compile(newton, (next(inputs()),), target="nvvm:sm_90a")


def test_a_loop_of_no_iterations_returns_the_input_itself():
    def program(x, limit):
        while x.abs().max() > deep(limit):
            x = x * 0.5
        return x

    traced = trace(program)
    with torch.no_grad():
        traced(torch.ones(4), torch.tensor(2.0))
        (record,) = traced.records
        loop = torch.ones(4), torch.tensor(0.2)
        compiled = compile_graph(record.graph, record_inputs(record, loop))
        assert isinstance(compiled.program.steps[-1], WhileStep)
        for limit in (0.2, 3.0):
            x, limit = torch.ones(4), torch.tensor(limit)
            (found,) = compiled(*record_inputs(record, (x, limit)))
            assert torch.equal(found, program(x, limit))
            assert (found is x) == (program(x, limit) is x)


def record_inputs(record, arguments):
    return [arguments[int(path[len("args[") : -1])] for path in record.input_paths]


def test_threads_call_at_once():
    compiled = compiled_of(while_in_while)
    given = [torch.randn(8, 16) * n for n in range(1, 17)]
    with torch.no_grad(), ThreadPoolExecutor(4) as pool:
        found = list(pool.map(compiled, given))
    for x, one in zip(given, found, strict=True):
        torch.testing.assert_close(one, while_in_while(x))


def test_an_endless_loop_can_be_interrupted():
    def program(x):
        h = deep(x)
        while h.sum() > 0:
            h = h * 1.0 + 0.0
        return h

    traced = trace(program)
    with torch.no_grad():
        traced(-torch.ones(4))
        (record,) = traced.records
    compiled = compile_graph(record.graph, [torch.ones(4)])
    # A process in the background of a shell ignores interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer = threading.Timer(0.2, _thread.interrupt_main)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            compiled(torch.ones(4))
    finally:
        signal.signal(signal.SIGINT, before)
    # The memory of the call is free again.
    assert torch.equal(compiled(-torch.ones(4))[0], program(-torch.ones(4)))


def test_what_stays_with_python_is_explained():
    def program(x):
        h = deep(x)
        if h.sum() > 0:
            h = h + torch.rand(16)
        else:
            h = h * 2 - 1
        return h

    traced = trace(program)
    with torch.no_grad():
        traced(torch.ones(8, 16))
        compiled = compile_graph(traced.records[0].graph, [torch.ones(8, 16)])
    assert isinstance(compiled, ControlledGraph)
    assert "control-external" in compiled.report()["control"][0]
    assert "Python runs branches and loops" in traced.explain()
