"""Attention over any number of keys: native code beside torch's."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from recording import Operators
from torch import Tensor, fx
from torch.nn import functional as F

from magweld.artifact import StandIns
from magweld.codegen.attention_code import ATTENTION_CODE
from magweld.codegen.shared_code import float_lanes
from magweld.importer.importer import import_graph
from magweld.importer.sized_attention import is_native_attention, run_attention

LANES = float_lanes()
STAND_INS = StandIns((61, 67))
TARGET = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def given(
    rows: int, keys: int, size: int = 2 * LANES, batches: int = 2, heads: int = 3
) -> list[Tensor]:
    """Return queries, keys and values as they lie behind one product for all."""
    lengths = (rows, keys, keys)
    return [
        torch.randn(batches, length, heads, 3 * size)[..., size : 2 * size].transpose(
            1, 2
        )
        for length in lengths
    ]


def close(result: Tensor, expected: Tensor) -> None:
    """Compare, also numbers that are none, and how elements lie."""
    torch.testing.assert_close(result, expected, equal_nan=True)
    assert result.stride() == expected.stride()


def compared(
    tensors: list[Tensor],
    mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Return what native code makes of attention, which has to be what torch does."""
    result, _ = run_attention(*tensors, is_causal, mask, scale)
    expected, _ = TARGET(*tensors, 0.0, is_causal, attn_mask=mask, scale=scale)
    close(result, expected)
    return result


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 6, 7, 11, 64, 65, 130])
@pytest.mark.parametrize("keys", [1, 2, 15, 16, 17, 63, 65, 127, 128, 129, 200])
def test_any_sizes_have_the_results_of_torch(rows: int, keys: int) -> None:
    compared(given(rows, keys))


@pytest.mark.parametrize("vectors", [1, 2, 3, 4, 5, 7, 8])
def test_rows_have_any_number_of_vectors(vectors: int) -> None:
    compared(given(9, 70, vectors * LANES))


@pytest.mark.parametrize("rows", [1, 9, 70, 150])
def test_causal_rows_see_no_later_keys(rows: int) -> None:
    for keys in (rows, rows + 40, max(1, rows - 5)):
        compared(given(rows, keys), is_causal=True)


@pytest.mark.parametrize(
    "shape", [(2, 3, 9, 77), (2, 1, 1, 77), (1, 1, 9, 77), (9, 77), (1, 3, 9, 1)]
)
def test_masks_are_broadcast(shape: tuple[int, ...]) -> None:
    compared(given(9, 77), torch.randn(shape), scale=0.3)
    hidden = torch.where(torch.rand(shape) < 0.5, -math.inf, 0.0)
    hidden[..., 0] = 0.0
    compared(given(9, 77), hidden)


@pytest.mark.parametrize("keys", [70, 127, 128, 129, 136])
@pytest.mark.parametrize("is_causal", [False, True])
def test_the_memory_behind_a_mask_is_not_read(keys: int, is_causal: bool) -> None:
    tensors = given(3, keys)
    memory = torch.full((3, keys + 9), math.nan)
    memory[:, :keys] = torch.randn(3, keys)
    result, _ = run_attention(*tensors, is_causal, memory[:, :keys], None)
    mask = memory[:, :keys]
    if is_causal:
        mask = mask.masked_fill(torch.ones(3, keys).triu(1) > 0, -math.inf)
    expected = F.scaled_dot_product_attention(*tensors, attn_mask=mask)
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("keys", [3, 130, 270])
def test_keys_that_a_causal_row_does_not_see_have_any_number(keys: int) -> None:
    query, key, value = given(keys, keys)
    expected = compared([query, key, value], is_causal=True)
    key[:, :, -1] = math.nan
    result, _ = run_attention(query, key, value, True, None, None)
    torch.testing.assert_close(result[:, :, :-1], expected[:, :, :-1])
    assert result[:, :, -1].isnan().all()


def test_rows_that_see_no_key_are_zero() -> None:
    mask = torch.zeros(5, 70)
    mask[1] = mask[3] = -math.inf
    result = compared(given(5, 70), mask)
    assert not result[:, :, 1].any()
    late = torch.zeros(5, 70)
    late[:, :66] = -math.inf
    compared(given(5, 70), late)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e20, -1e20])
@pytest.mark.parametrize("place", range(3))
def test_tensors_have_any_number(place: int, number: float) -> None:
    tensors = given(4, 70)
    tensors[place][1, 2, 3, 4] = number
    result, _ = run_attention(*tensors, False, None, None)
    expected = torch.ops.aten._scaled_dot_product_attention_math(*tensors)[0]
    torch.testing.assert_close(result, expected, equal_nan=True)


def test_large_scores_do_not_overflow() -> None:
    query, key, value = given(6, 130)
    compared([query * 100, key * 100, value])


def test_no_rows_and_columns_side_by_side_are_copied() -> None:
    query, key, value = given(16, 2 * LANES, 2 * LANES)
    turned = [query, key.transpose(2, 3), value.transpose(2, 3)]
    result, _ = run_attention(*turned, False, None, None)
    torch.testing.assert_close(result, F.scaled_dot_product_attention(*turned))
    flat = query.transpose(2, 3).contiguous().transpose(2, 3)
    result, _ = run_attention(flat, key, value, False, None, None)
    assert result.stride() == torch.empty_like(flat).stride()
    torch.testing.assert_close(result, F.scaled_dot_product_attention(flat, key, value))


def test_keys_without_values_are_not_seen() -> None:
    query, key, value = given(5, 10)
    compared([query, key, value[:, :, :8]])


def test_no_rows_are_no_error() -> None:
    assert run_attention(*given(0, 5), False, None, None)[0].shape[2] == 0


def test_threads_change_no_bit() -> None:
    tensors = given(150, 300)
    before = torch.get_num_threads()
    found = []
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            found.append(run_attention(*tensors, False, None, None)[0])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(found[0], other) for other in found[1:])


def attention_in(
    function: Callable[..., Tensor], *tensors: Tensor
) -> tuple[list[fx.Node], set[str]]:
    """Return the nodes of attention that torch runs in a graph, and what ran of it."""
    graph = fx.symbolic_trace(lambda q, k, v: function(q, k, v))
    with torch.no_grad():
        found = import_graph(graph, [*tensors], stand_ins=STAND_INS)
    run = [n for one in found.externals.values() for n in (*one.beside, one.node)]
    return [node for node in run if node.target is TARGET], set(found.externals)


def dense(rows: int, keys: int, size: int) -> list[Tensor]:
    """Return dense queries, keys and values."""
    return [torch.randn(2, 3, length, size) for length in (rows, keys, keys)]


def test_attention_between_any_queries_and_keys_has_native_code() -> None:
    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v).relu()

    found, _ = attention_in(plain, *dense(61, 67, 2 * LANES))
    assert [*map(is_native_attention, found)] == [True]
    found, _ = attention_in(plain, *dense(61, 67, LANES + 1))
    assert [*map(is_native_attention, found)] == [False], "no whole vectors"
    found, _ = attention_in(plain, *dense(61, 67, 512))
    assert [*map(is_native_attention, found)] == [False], "long rows"


def test_steps_for_sizes_run_it() -> None:
    def joined(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q * 2, k, v, is_causal=True).relu()

    graph = fx.symbolic_trace(lambda q, k, v: joined(q, k, v))
    with torch.no_grad():
        found = import_graph(graph, dense(61, 67, LANES), stand_ins=STAND_INS)
    (external,) = [
        one
        for one in found.externals.values()
        if TARGET in {n.target for n in (*one.beside, one.node)}
    ]
    code = external.sized(STAND_INS)
    assert code is not None
    assert code.shared_code == [ATTENTION_CODE]
    tensors = dense(9, 20, LANES)
    with Operators() as ran:
        *_, result = code.at((9, 20))(*tensors)
    assert not [name for name in ran.names if "attention" in name]
    assert len(result) > 1 or isinstance(result, Tensor)


@pytest.mark.parametrize(("rows", "keys"), [(1, 20), (1, 2000), (2, 20)])
def test_one_row_of_few_keys_is_torchs(rows: int, keys: int) -> None:
    with Operators() as ran:
        run_attention(*given(rows, keys), False, None, None)
    is_torchs = any("attention" in name for name in ran.names)
    assert is_torchs == (rows == 1 and keys == 20)
