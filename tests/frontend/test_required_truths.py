"""Branches that only raise become checks of the graph; where one fails, eager runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from magweld.api import compile_graph
from magweld.frontend import trace
from magweld.frontend.control.flow import flow_of
from magweld.frontend.guards.guard import Category
from magweld.frontend.monitor.code_table import CodeTables
from magweld.required_truth import REQUIRE_TRUTH

NET = nn.Linear(4, 3)


def checks(fast: Any) -> int:
    """Return how many checks the graphs of a traced program have."""
    nodes = [node for record in fast.records for node in record.graph.graph.nodes]
    return sum(node.target is REQUIRE_TRUTH for node in nodes)


def predicates(fast: Any) -> int:
    guards = [guard for record in fast.records for guard in record.guards]
    return sum(guard.category is Category.PREDICATE for guard in guards)


def outcome(program: Callable[..., Any], seed: int, bad: bool) -> list[Any]:
    """Run a program on an input; return all that it has done."""
    torch.manual_seed(seed)
    x, log = torch.randn(5, 4), []
    if bad:
        x[0, 0] = torch.nan
    try:
        made = program(x, log).detach()
    except (ValueError, AssertionError) as error:
        # Tests are rewritten to tell more of an assertion.
        made = f"{type(error).__name__}: {error}".splitlines()[0]
    return [made, x, log, torch.rand(1)]


def check_alike(program: Callable[..., Any], fast: Any, calls: int = 12) -> None:
    """Compare calls of which every fourth raises."""
    for seed in range(calls):
        bad = seed % 4 == 3
        expected, found = outcome(program, seed, bad), outcome(fast, seed, bad)
        assert isinstance(expected[0], str) == bad
        if bad:
            assert expected.pop(0) == found.pop(0)
        torch.testing.assert_close(found, expected, equal_nan=True)


def raises_text(x: Tensor, log: list[int]) -> Tensor:
    y = NET(x)
    if not (y == y).all():
        raise ValueError(f"{len(log)} of {y.shape}")
    return y.softmax(-1)


def raises_behind_draws(x: Tensor, log: list[int]) -> Tensor:
    y = NET(x) + torch.rand(3)
    if y.isnan().any():
        log.append(1)
        raise ValueError("not a number")
    return y * 2


def asserts(x: Tensor, log: list[int]) -> Tensor:
    log.append(1)
    x = x * torch.rand(4)
    for _ in range(3):
        assert x.isfinite().all(), "no"
        x = x + 1
    log.append(2)
    return x


def raises_in_a_branch(x: Tensor, log: list[int]) -> Tensor:
    y = NET(x)
    if y.nan_to_num().sum() > 0:
        y = y + 1
        if y.isnan().any():
            raise ValueError("in a branch")
    elif y.isnan().any():
        raise ValueError("in the other one")
    return y


PROGRAMS = [raises_text, raises_behind_draws, asserts, raises_in_a_branch]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("backend", ["eager", compile_graph])
def test_programs_raise_as_eager_ones(
    program: Callable[..., Any], grad: bool, backend: Any
) -> None:
    fast = trace(program, backend=backend)
    with torch.set_grad_enabled(grad):
        check_alike(program, fast)
    assert checks(fast) >= 1
    assert fast.stats()["hits"] > 0
    # Of the branch that does not raise one outcome is guarded.
    assert program is raises_in_a_branch or predicates(fast) == 0
    assert fast.breaks == []


def test_training_keeps_checks_that_nothing_reads() -> None:
    fast = trace(raises_text, compile="now")
    for seed in range(3):
        torch.manual_seed(seed)
        fast(torch.randn(5, 4), []).sum().backward()
    assert fast.stats()["compilations"] == 1
    with pytest.raises(ValueError, match="0 of"):
        fast(torch.full((5, 4), torch.nan), [])
    NET.zero_grad()


def test_a_write_before_a_check_is_put_back() -> None:
    def program(x: Tensor, log: list[int]) -> Tensor:
        x.mul_(2)
        if x.isnan().any():
            log.append(int(x.nansum() * 0))
            raise ValueError("not a number")
        return x.add_(1)

    fast = trace(program, backend="eager")
    with torch.no_grad():
        check_alike(program, fast)
    assert checks(fast) == 1


def test_what_the_function_catches_is_no_check() -> None:
    def program(x: Tensor, log: list[int]) -> Tensor:
        try:
            if x.isnan().any():
                raise ValueError("not a number")
            return x + 1
        except ValueError:
            return x - 1

    fast = trace(program, backend="eager")
    for value in (1.0, torch.nan, 2.0, torch.nan):
        x = torch.full((3,), value)
        torch.testing.assert_close(fast(x, []), program(x, []), equal_nan=True)
    assert checks(fast) == 0


def test_numbers_are_guarded() -> None:
    def program(x: Tensor) -> Tensor:
        if x.sum():
            raise ValueError("not zero")
        return x + 1

    fast = trace(program, backend="eager")
    for _ in range(3):
        fast(torch.zeros(3))
    assert checks(fast) == 0
    with pytest.raises(ValueError, match="not zero"):
        fast(torch.ones(3))


def test_checked_arguments_of_distributions_are_one_graph() -> None:
    scale = nn.Parameter(torch.ones(3))

    def program(x: Tensor, log: list[int]) -> Tensor:
        # Another test may have switched the checks off.
        normal = torch.distributions.Normal(NET(x), scale.exp(), validate_args=True)
        drawn = normal.rsample()
        return normal.log_prob(drawn).sum() + normal.entropy().mean()

    fast = trace(program, backend="eager")
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            check_alike(program, fast)
    assert len(fast.records) == 2
    assert fast.breaks == []


def test_flow_knows_ways_that_only_raise() -> None:
    def program(x: Any) -> Any:
        if x:
            raise ValueError
        while x:
            if x > 1:
                return x
        return x

    flow = flow_of(CodeTables({}).table(program.__code__))
    jumps = [row for row in flow.rows.values() if row.opname.startswith("POP_JUMP")]
    ways = [flow.only_raises(at) for at in flow.successors(jumps[0])]
    assert sorted(ways) == [False, True]
    assert not any(map(flow.only_raises, flow.successors(jumps[1])))
