"""What is compiled for f16 and bf16 rounds where torch does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from comparing import explanation, options_of, outcome
from half_operators import EXACT, NEAR, PRODUCTS, REDUCTIONS
from torch import Tensor, fx
from torch_calls import half_graph

from magweld.api import CompiledGraph, compile_graph
from magweld.importer import halves

DTYPES = (torch.bfloat16, torch.float16)
GRAPHS = (2, 6)  # usually, and with `--whole`; `--random-graphs` for more

of_both = pytest.mark.parametrize("dtype", DTYPES, ids=str)

Chosen = Callable[[Mapping[str, Callable[..., Any]], int], dict[str, Any]]


@pytest.fixture
def usual(whole: bool) -> Chosen:
    """Return a chooser of functions: all with `--whole`, else every second one."""

    def choose(
        functions: Mapping[str, Callable[..., Any]], first: int
    ) -> dict[str, Any]:
        names = [*functions] if whole else [*functions][first::2]
        return {name: functions[name] for name in names}

    return choose


def every_number(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return all numbers of a type twice, each pair of them by chance."""
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    generator = torch.Generator().manual_seed(0)
    x, y = (
        bits[torch.randperm(2**16, generator=generator)].view(dtype) for _ in range(2)
    )
    # Of two numbers at random one is mostly too small to change the other.
    x[::2] = torch.randn(2**15, generator=generator).to(dtype)
    y[::2] = torch.randn(2**15, generator=generator).to(dtype)
    return x, y


def compiled(functions: Mapping[str, Callable[..., Any]], *inputs: Tensor) -> Any:
    """Return the compiled graph that calls all functions."""
    graph = fx.Graph()
    places = tuple(graph.placeholder(f"x{n}") for n in range(len(inputs)))
    results = [graph.call_function(f, places) for f in functions.values()]
    graph.output(tuple(results))
    return compile_graph(fx.GraphModule(torch.nn.Module(), graph), inputs)


def is_same(mine: Tensor, theirs: Tensor) -> bool:
    """Tell whether numbers and the signs of zeros are equal."""
    if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
        return False
    if not theirs.is_floating_point():
        return torch.equal(mine, theirs)
    equal = (mine == theirs) & (mine.signbit() == theirs.signbit())
    return bool((equal | (mine.isnan() & theirs.isnan())).all())


def is_near(mine: Tensor, theirs: Tensor, ulps: int, absolute: float) -> bool:
    """Tell whether numbers are some units of their type apart, or next to nothing."""
    unit = torch.finfo(theirs.dtype).eps
    same = (mine == theirs) | (mine.isnan() & theirs.isnan())
    apart = (mine.double() - theirs.double()).abs()
    allowed = ulps * unit * theirs.double().abs() + absolute
    return mine.dtype == theirs.dtype and bool((same | (apart <= allowed)).all())


@of_both
def test_elements_are_torchs_to_the_bit(dtype: torch.dtype, usual: Chosen) -> None:
    x, y = every_number(dtype)
    exact = usual(EXACT, DTYPES.index(dtype))
    found = compiled(exact, x, y)
    assert isinstance(found, CompiledGraph)
    assert not found.imported.externals
    pairs = zip(exact.items(), found(x.clone(), y.clone()), strict=True)
    assert [n for (n, f), mine in pairs if not is_same(mine, f(x, y))] == []


@of_both
def test_functions_are_near_torchs(dtype: torch.dtype, usual: Chosen) -> None:
    x, y = every_number(dtype)
    x, y = x.clamp(-1e4, 1e4), y.clamp(-1e4, 1e4)
    near = usual(NEAR, DTYPES.index(dtype))
    found = compiled(near, x, y)
    assert not found.imported.externals
    pairs = zip(near.items(), found(x.clone(), y.clone()), strict=True)
    wrong = [n for (n, f), mine in pairs if not is_near(mine, f(x, y), 1, 2.0**-21)]
    assert wrong == []


@pytest.mark.sample(2)
@of_both
@pytest.mark.parametrize("spread", [0.3, 30.0])
def test_reductions_sum_in_single_precision(
    dtype: torch.dtype, spread: float, usual: Chosen
) -> None:
    generator = torch.Generator().manual_seed(1)
    x = (torch.randn(256, 768, generator=generator) * spread + 0.2).to(dtype)
    reductions = usual(REDUCTIONS, DTYPES.index(dtype))
    found = compiled(reductions, x)
    assert not found.imported.externals
    wrong = []
    for (name, function), mine in zip(
        reductions.items(), found(x.clone()), strict=True
    ):
        theirs = function(x)
        unit = 2 * torch.finfo(theirs.dtype).eps * float(theirs.abs().max())
        if not is_near(mine, theirs, 0, unit):
            wrong.append(name)
    assert wrong == []


@pytest.mark.sample(1)
@of_both
@pytest.mark.parametrize("by_library", [True, False])
def test_products_sum_in_single_precision(
    dtype: torch.dtype,
    by_library: bool,
    monkeypatch: pytest.MonkeyPatch,
    usual: Chosen,
) -> None:
    if by_library and dtype is torch.float16:
        pytest.skip("libraries have no instructions for f16")
    monkeypatch.setattr(halves, "_multiplies_bfloat", lambda *_: by_library)
    monkeypatch.setattr(halves, "_generates_pairs", lambda: False)
    generator = torch.Generator().manual_seed(2)
    x = (torch.randn(256, 768, generator=generator) / 8).to(dtype)
    # For bf16 those that are not generated are computed by libraries.
    products = usual(PRODUCTS, DTYPES.index(dtype) ^ by_library)
    found = compiled(products, x)
    assert bool(found.imported.externals) == by_library
    wrong = []
    for (name, function), mine in zip(products.items(), found(x.clone()), strict=True):
        theirs = function(x)
        unit = 2 * torch.finfo(dtype).eps * float(theirs.abs().max())
        if not is_near(mine, theirs, 0, unit):
            wrong.append(name)
    assert wrong == []


def test_transposed_weights_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halves, "_multiplies_bfloat", lambda *_: True)
    monkeypatch.setattr(halves, "_generates_pairs", lambda: False)
    x, w = torch.randn(16, 32).bfloat16(), torch.randn(8, 32).bfloat16()
    found = compiled({"linear": lambda x, w: torch.nn.functional.linear(x, w)}, x, w)
    (external,) = found.imported.externals.values()
    assert len(external.operands) == 2
    assert [node.op for node in external.operands] == ["placeholder"] * 2
    assert torch.equal(found(x, w)[0], torch.nn.functional.linear(x, w))


def test_cheap_windows_are_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halves, "_multiplies_bfloat", lambda *_: True)
    monkeypatch.setattr(halves, "_generates_pairs", lambda: True)

    def has_externals(*shape: int, **options: Any) -> bool:
        image = torch.randn(1, 32, 8, 8).bfloat16()
        weight = torch.randn(*shape).bfloat16()
        found = compiled(
            {"f": lambda x, w: torch.nn.functional.conv2d(x, w, **options)},
            image[:, : shape[1] * options.get("groups", 1)].contiguous(),
            weight,
        )
        return bool(found.imported.externals)

    assert not has_externals(16, 32, 1, 1)
    assert not has_externals(16, 31, 1, 1)
    assert not has_externals(32, 1, 5, 5, groups=32)
    assert not has_externals(16, 32, 3, 3, padding=1)
    # Groups of several, far and large windows, few filters.
    assert has_externals(32, 2, 3, 3, groups=16)
    assert has_externals(16, 32, 3, 3, stride=2)
    assert has_externals(16, 32, 5, 5)
    assert has_externals(15, 32, 3, 3)


def test_products_in_pairs_are_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halves, "_multiplies_bfloat", lambda *_: True)
    monkeypatch.setattr(halves, "_generates_pairs", lambda: True)
    x, w, v = torch.randn(16, 32), torch.randn(8, 32), torch.randn(8, 33)
    x, w, v = x.bfloat16(), w.bfloat16(), v.bfloat16()
    linear = torch.nn.functional.linear
    assert not compiled({"even": linear}, x, w).imported.externals
    # The last element of an odd sum is paired with zero, elements apart are copied.
    wide = torch.randn(16, 33).bfloat16()
    assert not compiled({"odd": linear}, wide, v).imported.externals
    apart = {"apart": lambda x, w: x.t() @ w}
    assert not compiled(apart, x, wide).imported.externals
    many = torch.randn(512, 512).bfloat16()
    assert compiled(apart, many, many).imported.externals


@of_both
def test_large_sums_overflow_as_torchs_do(dtype: torch.dtype) -> None:
    x = torch.full((3, 64), torch.finfo(dtype).max / 32, dtype=dtype)
    x[1] = -x[1]
    x[2, ::2] = -x[2, ::2]
    found = compiled({"sum": lambda x: x.sum(-1), "mean": lambda x: x.mean(-1)}, x)
    for mine, theirs in zip(found(x.clone()), (x.sum(-1), x.mean(-1)), strict=True):
        assert is_same(mine, theirs)
    assert found(x)[0][:2].isinf().all()
    # The sum is one in f32 until it is divided.
    assert found(x)[1].isfinite().all() == (dtype is torch.float16)


@pytest.mark.sample(1)
@of_both
def test_random_graphs_are_eager(
    request: pytest.FixtureRequest, dtype: Any, whole: bool
) -> None:
    asked = request.config.getoption("--random-graphs", default=None)
    count = asked or GRAPHS[whole]
    first = request.config.getoption("--random-seed", default=None) or 0
    for seed in range(first, first + count):
        options = options_of(seed)
        found = outcome(half_graph(seed, dtype), options)
        assert not found.failure, explanation(half_graph(seed, dtype), options)
