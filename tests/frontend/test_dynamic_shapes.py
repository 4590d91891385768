"""Lifting of dimensions: one record for many sizes, equal to eager on all of them."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from magweld.frontend.lifting import environment
from magweld.frontend.traced import trace


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def equal(left, right):
    """Whether two results agree in structure, values, shapes and strides."""
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        same = left.dtype == right.dtype and left.shape == right.shape
        return same and left.stride() == right.stride() and torch.equal(left, right)
    if isinstance(left, (tuple, list)):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def run(function, *calls, **options):
    """Call the traced form on several arguments, compare each; return the form."""
    traced = trace(function, backend="eager", **options)
    with torch.no_grad():
        for args in calls:
            mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
            result, expected = traced(*mine), function(*theirs)
            shapes = [getattr(arg, "shape", arg) for arg in args]
            text = f"{shapes}: {result}, {expected}\n{traced.explain()}"
            assert equal(result, expected), text
            assert equal(mine, theirs), text
    return traced


def tensors(*shapes):
    """Return calls with one tensor each."""
    return [(torch.randn(*shape),) for shape in shapes]


BATCHES = tuple((n, 6) for n in (2, 3, 4, 5, 7, 11))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 + 1,
        lambda x: x.view(-1),
        lambda x: x.view(x.shape[0], 2, 3).transpose(1, 2),
        lambda x: x.reshape(x.shape[0] * 2, -1),
        lambda x: x.view(x.size(0) * 3, x.size(1) // 3),
        lambda x: torch.cat([x, torch.zeros(x.shape[0], 2)], 1),
        lambda x: torch.cat([x, x]).mean(0),
        lambda x: x.mean(0) * x.shape[0],
        lambda x: x[: x.shape[0] // 2],
        lambda x: x[-1:],
        lambda x: x[None].expand(3, *x.shape),
        lambda x: x.t().contiguous(),
        lambda x: (x, x.shape, x.size(), tuple(x.shape), len(x), x.numel()),
        lambda x: [n + 1 for n in x.shape],
        lambda x: x.flatten(0).unsqueeze(0) / (x.size(0) ** 0.5),
        lambda x: x.new_ones((*x.shape[:-1], x.shape[-1] * 2)),
        lambda x: x.new_ones(x.shape[:-1] + x.shape),
        lambda x: torch.arange(x.shape[0]) + len(x),
        lambda x: x.softmax(0) @ x.t(),
        lambda x: x.contiguous() is x,
        lambda x: functional.layer_norm(x, x.shape[1:]),
        lambda x: x.is_contiguous() and x.dim() == 2 and x.shape == x.clone().shape,
        lambda x: x.chunk(2, dim=1),
        lambda x: torch.empty(x.shape).fill_(x.shape[0]),
        lambda x: x + torch.tensor([x.shape[0], 1, 2, 3, 4, 5]),
    ],
)
def test_batch(function):
    traced = run(function, *tensors(*BATCHES))
    assert traced.stats()["records"] == 2, traced.explain()


def test_two_dimensions():
    shapes = [(2, 4, 6), (3, 5, 6), (4, 7, 6), (5, 3, 6), (9, 2, 6)]
    layer = nn.Linear(6, 5)

    def flat(x):
        b, n, d = x.shape
        y = layer(x.view(b * n, d))
        return y.view(b, n, -1).sum(1)

    traced = run(flat, *tensors(*shapes))
    assert traced.stats()["records"] == 2, traced.explain()


def test_sizes_zero_and_one_have_their_own_records():
    shapes = [(n, 6) for n in (2, 3, 4, 1, 0, 5, 1, 0)]
    traced = run(lambda x: x.squeeze(0) + 1, *tensors(*shapes))
    assert traced.stats()["records"] == 4
    assert traced.stats()["hits"] == 4


def test_broadcast_that_ends_at_size_one():
    def add(x, y):
        return x + y

    calls = [(torch.randn(n, 4), torch.randn(n, 4)) for n in (2, 3, 4, 5)]
    more = [(torch.randn(6, 4), torch.randn(1, 4)), (torch.randn(1, 4),) * 2]
    run(add, *calls, *more, (torch.randn(3, 4), torch.randn(4)))


def test_mismatched_sizes_raise_as_eager_does():
    traced = run(
        lambda x, y: x * y, *((torch.randn(n), torch.randn(n)) for n in (2, 3, 4, 5))
    )
    with pytest.raises(RuntimeError, match="size"):
        traced(torch.randn(4), torch.randn(5))


def test_branch_on_a_size():
    shapes = [(n, 3) for n in (2, 3, 4, 5, 6, 7, 8, 3, 2)]
    traced = run(lambda x: x * 2 if x.shape[0] > 4 else x + 1, *tensors(*shapes))
    assert traced.stats()["records"] <= 5, traced.explain()
    texts = [str(guard) for guard in traced.records[0].guards]
    assert any("shape[0]" in text and "> 4" in text for text in texts), texts


def test_branch_on_the_size_of_an_intermediate_tensor():
    def halves(x):
        y = torch.cat([x, x, x[:1]])
        return y * 2 if y.shape[0] % 2 else y

    def parity(x):
        y = x[:, ::2].reshape(-1, 3)
        return y * 2 if y.shape[0] > 5 else y

    run(halves, *tensors(*BATCHES))
    run(parity, *tensors(*((n, 6) for n in (2, 3, 4, 5, 6, 7, 8))))


def test_smallest_size():
    def cut(x):
        n = min(x.shape)
        return x[:n, :n]

    run(cut, *tensors(*((n, m) for n in (2, 3, 4, 5) for m in (3, 4, 2))))


def test_convolution_with_a_dynamic_batch_and_image():
    model = nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    shapes = [(n, 2, n + 3, 8) for n in (2, 3, 4, 5, 6, 7)]
    traced = run(model, *tensors(*shapes))
    assert traced.stats()["records"] == 2, traced.explain()


def test_strides_are_part_of_the_form():
    def total(x):
        return x.transpose(0, 1).reshape(-1) if x.is_contiguous() else x.sum()

    calls = tensors(*((n, 4) for n in (2, 3, 4, 5)))
    turned = [(torch.randn(4, n).t(),) for n in (2, 3, 4, 5)]
    run(total, *calls, *turned, *calls, *((torch.randn(n, 8)[:, ::2],) for n in (2, 3)))


def test_lengths_of_an_encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    with torch.no_grad():
        traced = trace(encoder, backend="eager")
        for batch, length in ((2, 3), (3, 4), (4, 5), (5, 3), (2, 9), (7, 2)):
            x = torch.randn(batch, length, 8)
            torch.testing.assert_close(traced(x), encoder(x))
    assert traced.stats()["records"] == 2, traced.explain()


def test_attention_written_by_hand():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(8, 24)

        def forward(self, x, mask=None):
            b, n, d = x.shape
            q, k, v = self.qkv(x).view(b, n, 3, 2, d // 2).permute(2, 0, 3, 1, 4)
            scores = q @ k.transpose(-2, -1) / (q.size(-1) ** 0.5)
            if mask is not None:
                scores = scores.masked_fill(mask[:, None, None, :n] == 0, -1e9)
            causal = torch.ones(n, n).tril()
            scores = scores + causal.log()
            return (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, d)

    sizes = ((2, 3), (3, 4), (4, 5), (5, 6), (2, 9))
    calls = [(torch.randn(b, n, 8), torch.ones(b, 12)) for b, n in sizes]
    traced = run(Attention(), *calls)
    assert traced.stats()["records"] == 2, traced.explain()


def test_dropout_keeps_the_random_stream():
    def drop(x):
        return functional.dropout(x, 0.5) + torch.rand(x.shape[0], 1)

    traced = trace(drop, backend="eager")
    for n in (2, 3, 4, 5, 6):
        x = torch.ones(n, 3)
        torch.manual_seed(n)
        mine, state = traced(x), torch.get_rng_state()
        torch.manual_seed(n)
        assert torch.equal(mine, drop(x))
        assert torch.equal(state, torch.get_rng_state())
    assert traced.stats()["records"] == 2, traced.explain()


def test_writes_to_an_input_of_any_size():
    def scale(x):
        x[: x.shape[0] // 2].mul_(3)
        return x.shape[0]

    traced = run(scale, *tensors(*((n, 3) for n in (2, 4, 6, 7, 9))))
    assert traced.stats()["hits"] >= 1, traced.explain()


def test_growing_cache(twins):
    class Cache:
        def __init__(self):
            self.keys = torch.zeros(2, 3)
            self.length = 0

        def step(self, x):
            self.keys = torch.cat([self.keys, x])
            self.length += x.shape[0]
            return self.keys.sum(0) * self.length

    pair = twins(Cache)
    outcomes = [pair.step(torch.ones(1, 3)) for _ in range(10)]
    assert outcomes[-4:] == ["hit"] * 4, pair.traced.explain()


def test_a_check_of_all_elements_takes_their_number_anew():
    def scaled(x, mask):
        if mask.sum() == mask.numel():
            return x * 2, "all"
        return x * mask, "some"

    sizes = (2, 3, 4, 5, 6, 9)
    calls = [(torch.randn(n), torch.ones(n, dtype=torch.bool)) for n in sizes]
    hidden = torch.ones(7, dtype=torch.bool)
    hidden[2] = False
    traced = run(scaled, *calls, (torch.randn(7), hidden))
    assert traced.stats()["hits"] == 4, traced.explain()


def test_integers_that_make_shapes():
    calls = [(torch.randn(6, 4), n) for n in (2, 3, 4, 5, 1, 0, 2)]
    run(lambda x, n: torch.zeros(n, 4) + n, *calls)
    run(lambda x, n: x[:n] * 2, *calls, (torch.randn(6, 4), -1))
    run(lambda x, n: torch.cat([x, x.new_ones(n, 4)]).shape[0] + n, *calls)
    run(lambda x, n: x[n], *calls, (torch.randn(6, 4), -2))
    run(lambda x, n: x.repeat(n + 1, 1), *calls)
    run(lambda x, n: x.sum(n % 2), *calls)
    traced = run(lambda x, n: torch.arange(n + 2) * 2, *calls)
    assert traced.stats()["records"] <= 4, traced.explain()


def test_lengths_that_come_from_values():
    def select(x):
        return x[x > 0], x.shape[0]

    run(select, *tensors(*((n,) for n in (4, 5, 6, 7, 8))))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_steps_of_a_recurrent_layer(kind):
    layer = kind(3, 4, 2, batch_first=kind is nn.LSTM, bidirectional=kind is nn.GRU)

    def last(x):
        y, _ = layer(x)
        return y, y[:, -1], y.is_contiguous(), y.contiguous().view(-1)

    shapes = [(2, 5, 3), (3, 6, 3), (4, 7, 3), (5, 2, 3), (6, 9, 3), (1, 4, 3)]
    traced = run(last, *tensors(*shapes))
    assert traced.stats()["hits"] == 3, traced.explain()


def test_loops_over_a_dimension():
    def unrolled(x):
        h = torch.zeros(3)
        for t in range(x.shape[0]):
            h = torch.tanh(h + x[t])
        return h

    def rows(x):
        return sum(row.sum() for row in x)

    # The second is written out: what adds up the rows is native.
    for function, records in ((unrolled, 2), (rows, 3)):
        traced = run(function, *tensors(*((n, 3) for n in (2, 3, 4, 2, 3, 4))))
        assert traced.stats()["records"] == records


def test_gradients_of_a_dynamic_graph():
    layer = nn.Linear(4, 2)
    traced = trace(lambda x: layer(x).mean() * x.shape[0], backend="eager")
    for n in (2, 3, 4, 5, 6):
        x = torch.randn(n, 4)
        traced(x).backward()
        mine, layer.weight.grad = layer.weight.grad, None
        (layer(x).mean() * n).backward()
        assert torch.equal(mine, layer.weight.grad)
        layer.weight.grad = None
    assert traced.stats()["records"] == 3, traced.explain()


def double(x):
    return x * 2


def lifted(traced):
    """Return for each record, in the order of their making, whether it lifts sizes."""
    records = sorted(traced.records, key=lambda record: record.number)
    return [record.lifted is not None for record in records]


def lifts(*calls, **options):
    """Return the same for a program that is called."""
    return lifted(run(double, *calls, **options))


def test_the_second_size_is_lifted_unless_the_first_came_back():
    assert lifts(*tensors((4, 3), (5, 3), (6, 3))) == [False, True]
    assert lifts(*tensors((4, 3), (4, 3), (5, 3))) == [False, False]
    assert lifts(*tensors((4, 3), (4, 3), (5, 3), (6, 3))) == [False, False, True]
    # Of two that have not come back, one tells that they change.
    assert lifts(*tensors((4, 3), (4, 3), (5, 3), (5, 4))) == [False, False, True]


def test_what_differs_in_more_than_sizes_is_not_lifted_at_once():
    (x,), (y,) = tensors((4, 3), (5, 3))
    assert lifts((x,), (y.double(),)) == [False, False]
    assert lifts((x,), (y[None],)) == [False, False]
    assert lifts((x,), (y[:1, :2],)) == [False, False]
    assert lifts((x,), (y,), dynamic=False) == [False, False]


def test_sizes_of_what_needs_gradients_are_lifted_at_the_third():
    traced = trace(double, backend="eager")
    for n in (4, 5, 6):
        traced(torch.randn(n, 3, requires_grad=True))
    assert lifted(traced) == [False, False, True]


def test_marked_dimensions():
    traced = run(
        lambda x: x.view(-1) * x.shape[0],
        *tensors((2, 3), (4, 3), (5, 3), (5, 4)),
        dynamic={"x": 0},
    )
    assert traced.stats()["records"] == 2, traced.explain()
    assert traced.stats()["hits"] == 2


def test_specialised_shapes():
    traced = run(lambda x: x * 2, *tensors(*BATCHES), dynamic=False)
    assert traced.stats()["records"] == len(BATCHES)


def test_a_callable_backend_compiles_the_shapes_that_come_back():
    seen = []

    def backend(gm, inputs):
        seen.append(tuple(inputs[0].shape))
        return gm.forward

    traced = trace(lambda x: x.view(x.shape[0] * 3, -1) * 2, backend=backend)
    for n in (2, 3, 4, 5, 4, 5, 4, 5, 4, 5, 6):
        x = torch.randn(n, 6)
        assert torch.equal(traced(x), x.view(n * 3, -1) * 2)
    assert seen == [(2, 6), (4, 6), (5, 6)]


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_batch_of_a_recurrent_cell(kind):
    cell = kind(3, 4)

    def program(x):
        state = torch.zeros(x.shape[0], 4)
        state = (state, state) if kind is nn.LSTMCell else state
        outputs = []
        for step in range(x.shape[1]):
            state = cell(x[:, step], state)
            outputs.append(state[0] if kind is nn.LSTMCell else state)
        return torch.stack(outputs, 1)

    traced = trace(program, backend="eager")
    for batch in range(2, 9):
        x = torch.randn(batch, 3, 3)
        assert torch.equal(traced(x), program(x)), traced.explain()
    assert traced.stats()["records"] == 3, traced.explain(recompiles=True)


@pytest.mark.parametrize(
    "program",
    [
        lambda h: torch.arange(h) / torch.tensor([h, 2 * h])[0],
        lambda h: torch.zeros(h) + h,
        lambda h: torch.ones(h, 2).fill_(h) * torch.full((2,), h),
        lambda h: torch.arange(h).clamp(max=h - 2) % h,
    ],
    ids=range(4),
)
def test_a_number_that_is_a_size_and_a_value(program):
    traced = trace(program, backend="eager", dynamic={"h": True})
    for h in (5, 6, 4, 7, 9):
        result, expected = traced(h), program(h)
        assert result.dtype == expected.dtype
        assert torch.equal(result, expected)
    assert traced.stats()["records"] == 1, traced.explain()


def test_numbers_within_a_dict_comprehension():
    def program(x, n):
        table = {key: n + key for key in range(3)}
        return x * table[1], table, {n + key: x.shape for key in range(2)}

    traced = trace(program, backend="eager", check=True)
    x = torch.ones(2)
    for n in range(6):
        assert traced(x, n)[1:] == program(x, n)[1:]
        assert torch.equal(traced(x, n)[0], program(x, n)[0])


def test_symbols_are_imported_by_the_first_run_that_lifts_a_size():
    environment.import_what_symbols_need.cache_clear()
    made = environment.import_what_symbols_need.cache_info
    traced = trace(lambda x: x.view(-1) * 2, backend="eager")
    traced(torch.randn(2, 6))
    assert made().currsize == 0
    traced(torch.randn(3, 6))
    assert made().currsize == 1
