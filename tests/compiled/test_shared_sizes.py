"""A size of one has the program for many sizes where the graph is the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from magweld import api
from magweld.frontend import trace
from magweld.frontend.records.backends import run_eagerly
from magweld.graphs.forms import COMPILE_AFTER, COMPILE_BESIDE
from magweld.graphs.lifted_graph import LiftedGraph
from magweld.graphs.shared_sizes import Sharing

# Batches and lengths: the first ones lift both and compile the program.
MANY = ((4, 9), (6, 13), (9, 7), (5, 5), (8, 30))
ONES = ((1, 9), (1, 12), (1, 13), (1, 2), (1, 64), (1, 127))

Inputs = Callable[[int, int], tuple[Tensor, ...]]


@pytest.fixture(autouse=True)
def _only_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile programs for all sizes alone, and use them."""

    def by_torch(graph: fx.GraphModule, inputs: Any, **_: Any) -> Any:
        return run_eagerly(graph, inputs)

    monkeypatch.setenv("MAGWELD_RACE", "0")
    monkeypatch.setattr(api, "compile_graph", by_torch)
    torch.manual_seed(0)


def rows(batch: int, length: int) -> tuple[Tensor, ...]:
    """Return sequences of rows."""
    return (torch.randn(batch, length, 16),)


def programs(
    model: Any, inputs: Inputs, calls: Sequence[tuple[int, int]] = (*MANY, *ONES)
) -> list[LiftedGraph]:
    """Call a model for some sizes, compare; return graphs with a program for all."""
    if isinstance(model, nn.Module):
        model.eval()
    program = trace(model, compile="now")
    with torch.no_grad():
        for sizes in calls:
            given = inputs(*sizes)
            found, expected = program(*given), model(*given)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
            assert found.stride() == expected.stride()
    graphs = [one.lifted for one in program.records if one.lifted is not None]
    return [one for one in graphs if one.all_sizes and one.all_sizes.tiers]


class Encoder(nn.Module):
    """Attention over the rows of a sequence that a mask lets through."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(16, 48)
        self.output = nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return a tensor of the shape of `x`, (batch, length, 16)."""
        batch, length, width = x.shape
        parts = self.inputs(x).view(batch, length, 3, 1, 16).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*parts, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        return self.norm(x + self.output(mixed))


def masked(batch: int, length: int) -> tuple[Tensor, ...]:
    """Return sequences, and a mask that lets their first rows through at least."""
    mask = torch.rand(batch, 1, 1, length) > 0.4
    mask[..., 0] = True
    return torch.randn(batch, length, 16), mask


def flattened(x: Tensor) -> Tensor:
    """Have a result that is a view for one sequence."""
    return torch.tanh(x).transpose(0, 1).reshape(-1, 16)


SHARED: dict[str, tuple[Callable[[], Any], Inputs]] = {
    "elements": (lambda: lambda x: torch.tanh(x) * 2, rows),
    "the size as a number": (lambda: lambda x: torch.tanh(x) * x.shape[0], rows),
    "rows that are flattened": (
        lambda: lambda x: torch.softmax(x.view(x.shape[0] * x.shape[1], 16), -1),
        rows,
    ),
    "rows of another order": (lambda: flattened, rows),
    "attention with a mask": (Encoder, masked),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", SHARED)
def test_one_program_answers_a_batch_of_one(name: str) -> None:
    make, inputs = SHARED[name]
    graphs = programs(make(), inputs)
    assert sorted(graph.made for graph in graphs) == [0, 1]
    (shared,) = (graph for graph in graphs if not graph.made)
    assert shared.all_sizes is not None
    (tier,) = shared.all_sizes.tiers
    sized: Any = tier.compiled
    assert sized.is_shared
    assert sized.relation.least == 1
    # What own programs have to be worth is what was spent, for whichever graph.
    other = next(graph for graph in graphs if graph.made)
    assert shared.all_sizes.program_seconds >= other.compile_seconds > 0


def test_it_answers_the_first_size_of_a_batch_of_one() -> None:
    graphs = programs(lambda x: torch.tanh(x) * 2, rows, (*MANY, *[(1, 9)] * 4))
    assert sorted(graph.made for graph in graphs) == [0, 1]
    assert not any(graph.compiled for graph in graphs)


LENGTHS = tuple((1, length) for length in (9, 13, 7, 5, 30))


def test_a_graph_without_any_other_size_has_it() -> None:
    calls = (*LENGTHS, *[(1, 1)] * 4)
    graphs = programs(lambda x: torch.tanh(x) * 2, rows, calls)
    assert sorted(graph.made for graph in graphs) == [0, 1]
    assert not any(graph.compiled for graph in graphs)


@pytest.mark.parametrize(
    "model",
    [
        lambda x: torch.tanh(x) * (2 if x.shape[1] == 1 else 3),
        lambda x: torch.tanh(x) * 2 if x.shape[1] == 1 else torch.relu(x) * 2,
    ],
)
def test_a_graph_without_any_other_size_is_compiled_where_it_is_another(
    model: Callable[[Tensor], Tensor],
) -> None:
    program = trace(model, compile="now")
    for size in (*LENGTHS, *[(1, 1)] * 4):
        (x,) = rows(*size)
        with torch.no_grad():
            torch.testing.assert_close(program(x), model(x))
    (last,) = (one for one in program.records if one.number == 2)
    assert last.compilations == 1


def test_a_size_of_one_waits_for_a_program_that_is_being_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Sharing, "may_be", False)
    monkeypatch.setattr(Sharing, "is_awaited", True)
    program = trace(lambda x: torch.tanh(x) * 2, compile="now")
    made = []
    for size in (*LENGTHS, *[(1, 1)] * (COMPILE_BESIDE + COMPILE_AFTER)):
        (x,) = rows(*size)
        with torch.no_grad():
            torch.testing.assert_close(program(x), torch.tanh(x) * 2)
        made += [one.compilations for one in program.records if one.number == 2]
    assert len(made) == COMPILE_BESIDE + COMPILE_AFTER
    # Not for ever.
    assert made.index(1) >= COMPILE_BESIDE - 1


def branched(x: Tensor) -> Tensor:
    """Do something else for one sequence."""
    return torch.relu(x) * 2 if x.shape[0] == 1 else torch.tanh(x) * 2


def squeezed(x: Tensor) -> Tensor:
    """Have a dimension less for one sequence."""
    return torch.tanh(x.squeeze(0)) * 2


def turned(x: Tensor) -> Tensor:
    """Have a result whose rows lie in the order of the argument's."""
    return torch.tanh(x.transpose(0, 1)) * 2


def counted(x: Tensor) -> Tensor:
    """Have a number that is no size of the batch."""
    return torch.tanh(x) * (2 if x.shape[0] == 1 else 3)


@pytest.mark.parametrize("model", [branched, squeezed, turned, counted])
def test_what_is_not_the_same_graph_has_a_program_of_its_own(
    model: Callable[[Tensor], Tensor],
) -> None:
    graphs = programs(model, rows)
    assert all(graph.made for graph in graphs)


def joined(x: Tensor) -> Tensor:
    """Have a copy for many sequences where there is none for one."""
    return x.transpose(0, 1).reshape(-1, 16)


def test_results_are_parts_of_arguments_where_those_of_eager_are() -> None:
    program = trace(joined, compile="now")
    with torch.no_grad():
        for sizes in (*MANY, *ONES):
            (given,) = rows(*sizes)
            found, expected = program(given), joined(given)
            assert torch.equal(found, expected)
            storages = [one.untyped_storage().data_ptr() for one in (given, found)]
            assert (storages[0] == storages[1]) == (sizes[0] == 1)


def test_the_program_of_one_is_none_for_many() -> None:
    graphs = programs(lambda x: torch.tanh(x) * 2, rows, (*ONES, *MANY))
    assert all(graph.made for graph in graphs)


def test_sizes_of_none_and_one_come_in_any_order() -> None:
    odd = ((1, 9), (1, 1), (3, 1), (0, 9), (1, 12), (4, 9), (1, 0), (7, 1), (1, 3))
    for name in ("elements", "rows that are flattened", "rows of another order"):
        make, inputs = SHARED[name]
        programs(make(), inputs, (*MANY, *odd, *ONES, *odd[::-1]))
