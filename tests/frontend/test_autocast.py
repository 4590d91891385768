"""Autocast that a traced program switches: results, gradients and modes of eager."""

from __future__ import annotations

import contextlib
import copy
import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from magweld.frontend import trace
from magweld.importer.substitutions import UNCAST

HALF = torch.bfloat16


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))


def plain(model, x):
    with torch.autocast("cpu", dtype=HALF):
        y = model(x)
    return y, model(x)


def nested(model, x):
    with torch.autocast("cpu", dtype=HALF):
        y = model(x)
        with torch.autocast("cpu", enabled=False):
            z = model(x)
        return y, z, model(x)


def asks(model, x):
    before = torch.is_autocast_enabled("cpu")
    with torch.autocast("cpu", dtype=HALF, cache_enabled=False):
        inside = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
        y = model(x) if torch.is_autocast_enabled("cpu") else x
    return y, before, inside, torch.is_autocast_enabled("cpu")


def returns_inside(model, x):
    for _ in range(2):
        with torch.autocast("cpu", dtype=HALF):
            if x.shape[0] > 1:
                return (model(x),)
    return (x,)


@torch.autocast("cpu", dtype=HALF)
def decorated(model, x):
    return (model(x),)


def in_no_grad(model, x):
    with torch.no_grad(), torch.autocast("cpu", dtype=HALF):
        y = model(x)
    return y, model(x)


PROGRAMS = [plain, nested, asks, returns_inside, decorated, in_no_grad]


def same(left, right):
    if not isinstance(left, torch.Tensor):
        return left == right
    return left.dtype == right.dtype and torch.equal(left, right)


def gradients(model, results):
    model.zero_grad()
    tensors = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
    if tensors:
        torch.stack([tensor.float().sum() for tensor in tensors]).sum().backward()
    return [p.grad for p in model.parameters()]


def agree_on(program, traced, model, twin, x):
    expected, found = program(twin, x), traced(model, x)
    assert len(expected) == len(found)
    assert all(map(same, expected, found))
    theirs, ours = gradients(twin, expected), gradients(model, found)
    assert [g is None for g in theirs] == [g is None for g in ours]
    pairs = zip(theirs, ours, strict=True)
    assert all(a is None or torch.equal(a, b) for a, b in pairs)
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("options", [{}, {"check": True}, {"backend": "magweld"}])
def test_one_record_with_results_and_gradients_of_eager(program, options):
    model, twin = make_model(), make_model()
    traced = trace(program, **{"backend": "eager", **options})
    for seed in range(4):
        torch.manual_seed(seed)
        agree_on(program, traced, model, twin, torch.randn(3, 4))
    assert traced.breaks == []
    assert traced.stats()["hits"] == 3
    assert traced.stats()["graphs"] == 1


def test_changing_sizes():
    model, twin = make_model(), make_model()
    traced = trace(plain, backend="eager")
    for size in range(2, 9):
        agree_on(plain, traced, model, twin, torch.randn(size, 4))
    assert traced.stats()["hits"] >= 3


def test_new_values_in_a_parameter_are_cast_again():
    model, twin = make_model(), make_model()
    traced = trace(plain, backend="eager")
    x = torch.randn(3, 4)
    for _ in range(3):
        agree_on(plain, traced, model, twin, x)
        with torch.no_grad():
            for parameter in itertools.chain(model.parameters(), twin.parameters()):
                parameter.add_(0.5)
    assert traced.stats()["hits"] == 2


def test_mode_on_entry_is_guarded():
    model, twin = make_model(), make_model()
    traced = trace(plain, backend="eager")
    x = torch.randn(3, 4)
    agree_on(plain, traced, model, twin, x)
    with torch.autocast("cpu", dtype=HALF):
        expected, found = plain(twin, x), traced(model, x)
        assert torch.is_autocast_enabled("cpu")
    assert all(map(same, expected, found))
    assert found[1].dtype is HALF


def test_mode_that_stays_on():
    def program(x):
        torch.set_autocast_dtype("cpu", HALF)
        torch.set_autocast_enabled("cpu", True)
        return x @ x.t()

    traced = trace(program, backend="eager")
    before = torch.get_autocast_dtype("cpu")
    try:
        for _ in range(3):
            assert traced(torch.ones(2, 2)).dtype is HALF
            assert torch.is_autocast_enabled("cpu")
            torch.set_autocast_enabled("cpu", False)
    finally:
        torch.set_autocast_enabled("cpu", False)
        torch.set_autocast_dtype("cpu", before)
    assert traced.stats()["hits"] == 2


def test_truth_of_a_tensor_inside():
    def program(model, x):
        with torch.autocast("cpu", dtype=HALF):
            y = model(x)
            y = y * 2.0 if y.sum() > 0 else y - 1.0
        return (y,)

    model, twin = make_model(), make_model()
    traced = trace(program, backend="eager")
    for seed in range(8):
        torch.manual_seed(seed)
        agree_on(program, traced, model, twin, torch.randn(3, 4) * 3.0)


def test_break_inside():
    seen = []

    def program(model, x):
        with torch.autocast("cpu", dtype=HALF):
            y = model(x)
            seen.append(y.sum().item())
            z = model(y.float())
        return y, z, model(x)

    model, twin = make_model(), make_model()
    traced = trace(program, backend="eager")
    for seed in range(6):
        torch.manual_seed(seed)
        agree_on(program, traced, model, twin, torch.randn(3, 4))
        assert len(seen) == 2 * (seed + 1)
        assert seen[-1] == seen[-2]
    assert traced.stats()["hits"] > 0


def test_error_inside_leaves_no_region_open():
    def program(x, index):
        with torch.autocast("cpu", dtype=HALF):
            return torch.nn.functional.embedding(index, x) @ x.t()

    traced = trace(program, backend="eager")
    x = torch.randn(4, 4)
    for _ in range(2):
        assert torch.equal(
            traced(x, torch.tensor([1, 2])), program(x, torch.tensor([1, 2]))
        )
    assert traced.stats()["hits"] == 1
    with pytest.raises(IndexError):
        traced(x, torch.tensor([1, 7]))
    assert not torch.is_autocast_enabled("cpu")
    torch.autocast_increment_nesting()
    assert torch.autocast_decrement_nesting() == 0


def cell_arguments(gates, states):
    """Return arguments of a cell of a recurrent layer with so many gates and states."""
    hidden = [torch.randn(3, 8) for _ in range(states)]
    weights = [torch.randn(gates * 8, 8) / 4 for _ in range(2)]
    biases = [torch.randn(gates * 8) for _ in range(2)]
    return torch.randn(3, 8), hidden if states > 1 else hidden[0], *weights, *biases


def normalized_arguments():
    return torch.randn(3, 8), torch.zeros(8), torch.ones(8), None, None, True


REPLACED = {
    "alpha-dropout": lambda: (F.alpha_dropout, torch.randn(3, 8), 0.5, True),
    "attention": lambda: (
        F.scaled_dot_product_attention,
        *(torch.randn(2, 3, 5, 8) for _ in range(3)),
    ),
    "attention-operator": lambda: (
        torch.ops.aten.scaled_dot_product_attention.default,
        *(torch.randn(2, 3, 5, 8) for _ in range(3)),
    ),
    "batch-norm": lambda: (F.batch_norm, *normalized_arguments()),
    "dropout": lambda: (F.dropout, torch.randn(3, 8)),
    "gru-cell": lambda: (torch.gru_cell, *cell_arguments(3, 1)),
    "lstm-cell": lambda: (torch.lstm_cell, *cell_arguments(4, 2)),
    "relu-cell": lambda: (torch.rnn_relu_cell, *cell_arguments(1, 1)),
    "tanh-cell": lambda: (torch.rnn_tanh_cell, *cell_arguments(1, 1)),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", REPLACED)
def test_functions_that_are_replaced_cast_as_torch_does(name, inside):
    function, *arguments = REPLACED[name]()

    def program(*given):
        # One before, so that a result in other types is seen.
        first, *rest = given
        with torch.autocast("cpu", HALF) if inside else contextlib.nullcontext():
            return function(first * 2, *rest)

    fast = trace(program, compile="now")
    for number in range(3):
        found = []
        for call in (fast, program):
            torch.manual_seed(number)
            with torch.no_grad(), torch.autocast("cpu", HALF, enabled=not inside):
                found.append(call(*copy.deepcopy(arguments)))
        torch.testing.assert_close(*found, rtol=0.03, atol=0.03)
    assert fast.stats()["hits"] == 2


def test_torch_casts_nothing_for_functions_that_are_replaced_in_autocast():
    names = {getattr(key, "__name__", "").strip("_").split(".")[0] for key in UNCAST}
    names -= {"bernoulli"}
    assert names == {"alpha_dropout", "batch_norm", "dropout", "feature_alpha_dropout"}
    for key in ("AutocastCPU", "AutocastCUDA"):
        for name in (*names, "bernoulli_.float", "bernoulli_.Tensor"):
            casts = torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", key)
            assert not casts, name


@pytest.mark.parametrize("compile", ["now", "background"])
def test_operators_that_call_others_cast_in_them(compile):
    def program(x):
        return torch.linalg.pinv(x * 2) + 1

    fast, x = trace(program, compile=compile), torch.randn(5, 5)
    for _ in range(4):
        with torch.autocast("cpu", HALF):
            found, expected = fast(x), program(x)
        assert expected.dtype is HALF
        torch.testing.assert_close(found, expected)
        fast.wait()
    assert fast.stats()["hits"] == 3


@pytest.mark.parametrize(
    "program",
    [
        torch.pinverse,
        lambda x: torch.cdist(x, x + 1),
        torch.linalg.cond,
        torch.linalg.pinv,
    ],
)
def test_operators_that_autocast_casts_for_cast_nothing_inside(program):
    fast = trace(lambda x: program(x), compile="now")
    for _ in range(3):
        x = torch.randn(32, 32) + torch.eye(32) * 9
        with torch.autocast("cpu", HALF):
            found, expected = fast(x), program(x)
        assert found.dtype is expected.dtype
        torch.testing.assert_close(found, expected)
