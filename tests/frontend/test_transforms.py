"""Transforms of `torch.func` inside of programs are part of their graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, func, nn
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

from magweld.frontend import trace

CALLS = 4
MADE = func.vmap(lambda row: row * 2)
LAYER = nn.Linear(4, 2).requires_grad_(False)
SEEN = torch.rand(2, 6) > 0.5


def closed_over(x: Tensor, w: Tensor) -> Tensor:
    scale = 3

    def row(one: Tensor) -> Tensor:
        return one * w * scale + one.shape[0]

    return func.vmap(row)(x)


def structured(x: Tensor, w: Tensor) -> Any:
    return func.vmap(lambda d, k: {"sum": d["x"] + k, "pair": (d["x"] * 2, k)})(
        {"x": x}, w.expand(3, 4)
    )


def masked(x: Tensor, w: Tensor) -> Tensor:
    def seen(b: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (k <= q) & SEEN[b, k]

    for dims in ((None, None, 0), (None, 0, None), (0, None, None)):
        seen = func.vmap(seen, in_dims=dims)
    with TransformGetItemToIndex():
        mask = seen(torch.arange(2), torch.arange(5), torch.arange(6))
    return mask * x.sum()


def of_a_module(x: Tensor, w: Tensor) -> Tensor:
    return func.vmap(LAYER)(x)


def loss(w: Tensor, row: Tensor) -> Tensor:
    return (row * w).sin().sum()


PROGRAMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "rows": lambda x, w: func.vmap(lambda r: (r * 2 + 1).sum())(x) * 2,
    "made before": lambda x, w: MADE(x) + 1,
    "columns": lambda x, w: func.vmap(lambda c: c + w[0], 1, 1)(x),
    "one for all": lambda x, w: func.vmap(loss, in_dims=(None, 0))(w, x),
    "keyword": lambda x, w: func.vmap(lambda r, k=1.0: r * k)(x, k=2.0),
    "closure": closed_over,
    "structures": structured,
    "chunks": lambda x, w: func.vmap(lambda r: r.sin(), chunk_size=2)(x),
    "constants": lambda x, w: func.vmap(
        lambda r: torch.where(r > 0, r, torch.tensor(-0.0)) * torch.ones(4)
    )(x),
    "in place": lambda x, w: func.vmap(lambda r: r.clone().add_(1).mul_(2))(x),
    "drawn": lambda x, w: func.vmap(
        lambda r: F.dropout(r, 0.5), randomness="different"
    )(x),
    "a mask of indices": masked,
    "gradient": lambda x, w: func.grad(loss)(w, x) + 1,
    "value and gradient": lambda x, w: func.grad_and_value(loss, argnums=(0, 1))(w, x),
    "auxiliary": lambda x, w: func.grad(lambda v: (v.sum() ** 2, v * 2), has_aux=True)(
        w
    ),
    "gradients of rows": lambda x, w: func.vmap(func.grad(loss), (None, 0))(w, x),
    "gradient twice": lambda x, w: func.grad(
        lambda v: func.grad(lambda u: (u**3).sum())(v).sum()
    )(w),
    "jacrev": lambda x, w: func.jacrev(lambda v: v.sin() * v.sum())(w),
    "jacfwd": lambda x, w: func.jacfwd(lambda v: v.sin() * v.sum())(w),
    "hessian": lambda x, w: func.hessian(lambda v: (v**3).sum())(w),
    "jvp": lambda x, w: func.jvp(lambda v: v * v.sum(), (w,), (w + 1,)),
    "a module": of_a_module,
}


def results(program: Callable[..., Any]) -> list[Any]:
    found = []
    for number in range(CALLS):
        torch.manual_seed(number)
        x, w = torch.randn(3, 4), torch.randn(4)
        found.append((program(x, w), torch.get_rng_state()))
    return found


@pytest.mark.sample(15)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("backend", ["eager", "magweld"])
def test_a_transform_belongs_to_the_graph(name: str, backend: str) -> None:
    moment = "now" if backend == "magweld" else None
    traced = trace(PROGRAMS[name], backend=backend, compile=moment)
    torch.testing.assert_close(results(traced), results(PROGRAMS[name]))
    assert traced.breaks == [], traced.explain()
    assert traced.stats()["hits"] == CALLS - 1
    assert traced.stats()["records"] == 1


def test_what_the_function_reads_is_guarded() -> None:
    box = {"scale": 1.0}
    traced = trace(lambda x: func.vmap(lambda r: r * box["scale"])(x), backend="eager")
    for scale in (1.0, 1.0, 2.0, 2.0, 1.0):
        box["scale"] = scale
        assert torch.equal(traced(torch.ones(2, 3)), torch.full((2, 3), scale))
    assert traced.stats()["records"] == 2


@pytest.mark.parametrize("choice", ["in_dims", "argnums"])
def test_the_ways_of_a_transform_are_guarded(choice: str) -> None:
    box = {"n": 0}

    def program(x: Tensor) -> Tensor:
        n = box["n"]
        if choice == "in_dims":
            return func.vmap(lambda r: r.cumsum(0), in_dims=n)(x)
        return func.grad(lambda a, b: (a * b * b).sum(), argnums=n)(x, x + 1)

    traced = trace(program, backend="eager")
    x = torch.arange(9.0).view(3, 3)
    for n in (0, 0, 1, 1, 0):
        box["n"] = n
        assert torch.equal(traced(x), program(x))
    assert traced.stats()["hits"] == 3


def test_a_function_may_change_state() -> None:
    seen: list[int] = []

    def program(x: Tensor) -> Tensor:
        return func.vmap(lambda r: (seen.append(r.dim()), r + 1)[1])(x)

    traced = trace(program, backend="eager")
    for number in range(CALLS):
        traced(torch.ones(2, 3))
        assert seen == [1] * (number + 1)
    assert traced.stats()["hits"] == CALLS - 1


def test_a_tensor_of_a_transform_is_no_state() -> None:
    kept: list[Any] = []

    def program(x: Tensor) -> Tensor:
        return func.vmap(lambda r: (kept.append(r * 2), r + 1)[1])(x)

    traced = trace(program, backend="eager")
    for number in range(CALLS):
        assert torch.equal(traced(torch.ones(2, 3)), torch.full((2, 3), 2.0))
        assert len(kept) == number + 1


def test_what_needs_gradients_is_a_break() -> None:
    def program(x: Tensor) -> Tensor:
        return func.vmap(lambda r: r.sin().sum())(x * 2).sum()

    traced = trace(program, backend="eager")
    for _ in range(CALLS):
        grads = []
        data = torch.randn(2, 3)
        for call in (traced, program):
            x = data.clone().requires_grad_()
            call(x).backward()
            grads.append(x.grad)
        torch.testing.assert_close(*grads)
    assert {one.id for one in traced.breaks} == {"autograd-graph"}


def test_sizes_that_change() -> None:
    traced = trace(closed_over, backend="eager")
    for rows in (2, 3, 4, 5, 6, 7, 3, 2):
        x, w = torch.randn(rows, 4), torch.randn(4)
        torch.testing.assert_close(traced(x, w), closed_over(x, w))
    assert traced.breaks == [] or {one.id for one in traced.breaks} == {"not-lifted"}


def test_numbers_that_change() -> None:
    def program(x: Tensor, k: int) -> Any:
        inside = func.vmap(lambda r, n: r * k + n + r.shape[0], (0, None))(x, k + 1)
        return inside * k, k * 2

    traced = trace(program, backend="eager", dynamic={"k": True})
    for k in (2, 3, 4, 4, 3, 2, 5):
        x = torch.randn(2, 4)
        torch.testing.assert_close(traced(x, k), program(x, k))


def test_an_exception_in_the_function_reaches_the_program() -> None:
    def program(x: Tensor) -> Any:
        def row(r: Tensor) -> Tensor:
            if r.shape[0] > 2:
                raise ValueError("too long")
            return r.sin()

        try:
            return func.vmap(row)(x).sum().item() > 0
        except ValueError as error:
            return str(error)

    traced = trace(program, backend="eager")
    for size in (2, 2, 3, 3, 2):
        x = torch.ones(2, size)
        assert traced(x) == program(x)


def test_in_autocast_a_transform_is_a_break() -> None:
    def program(x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return func.vmap(lambda r: r @ r)(x)

    traced = trace(program, backend="eager")
    for _ in range(CALLS):
        x = torch.randn(2, 3)
        result, expected = traced(x), program(x)
        assert result.dtype == expected.dtype
        torch.testing.assert_close(result, expected)


def test_in_the_search_for_anomalies_a_transform_is_a_break() -> None:
    """Autograd runs operators below it that no mode of torch may see."""

    def program(x: Tensor) -> Tensor:
        return func.grad(lambda t: (t * t).sum())(x * 1) + 1

    traced = trace(program, backend="eager")
    with torch.autograd.set_detect_anomaly(True):
        for _ in range(CALLS):
            x = torch.randn(2, 3)
            assert torch.equal(traced(x), program(x))
    assert [refusal.id for refusal in traced.breaks] == ["native-call"]


def test_arguments_of_jvp_that_need_gradients_are_a_break() -> None:
    weight = torch.nn.Parameter(torch.randn(3))

    def program(x: Tensor) -> Tensor:
        return func.jvp(lambda t: t * 2, (x + weight,), (torch.ones_like(x),))[1]

    traced = trace(program, backend="eager")
    for _ in range(CALLS):
        x = torch.randn(2, 3)
        assert torch.equal(traced(x), program(x))
    assert [refusal.id for refusal in traced.breaks] == ["autograd-graph"]


def test_a_form_that_is_only_asked_for_is_guarded() -> None:
    def program(x: Tensor, w: Tensor) -> Tensor:
        return func.vmap(lambda r: torch.ones(r.shape[0]) * w.dim())(x)

    traced = trace(program, backend="eager", dynamic=False)
    for shape in ((2, 3), (2, 3), (2, 4), (5, 3), (2, 3)):
        for w in (torch.ones(3), torch.ones(2, 2)):
            x = torch.randn(shape)
            assert torch.equal(traced(x, w), program(x, w))


def test_a_mode_that_stays_is_seen() -> None:
    modes: list[Any] = []

    def program(x: Tensor) -> Tensor:
        modes.append(TransformGetItemToIndex())
        modes[-1].__enter__()
        return x * 2

    traced = trace(program, backend="eager")
    for number in range(3):
        depth = torch._C._len_torch_function_stack()
        traced(torch.ones(3))
        assert torch._C._len_torch_function_stack() == depth + 1
        modes.pop().__exit__(None, None, None)
        assert number < 3


def test_a_value_that_is_read_inside_is_refused() -> None:
    def program(x: Tensor, w: Tensor) -> Tensor:
        return func.vmap(lambda r: r * w.max().item())(x)

    traced = trace(program, backend="eager")
    for number in range(CALLS):
        x, w = torch.randn(2, 3), torch.full((2,), float(number // 2))
        assert torch.equal(traced(x, w), program(x, w))


def test_what_the_function_writes_is_written_by_hits() -> None:
    def program(x: Tensor, total: Tensor) -> Tensor:
        def row(r: Tensor) -> Tensor:
            total.add_(1)
            return r * total

        return func.vmap(row)(x)

    traced, mine, twin = trace(program, backend="eager"), torch.zeros(3), torch.zeros(3)
    for _ in range(CALLS):
        x = torch.randn(2, 3)
        torch.testing.assert_close(traced(x, mine), program(x, twin))
        assert torch.equal(mine, twin)


def test_gradients_that_a_function_switches_on() -> None:
    w = torch.ones(3, requires_grad=True)

    def program(x: Tensor) -> Tensor:
        def row(r: Tensor) -> Tensor:
            with torch.enable_grad():
                return r * w

        return func.vmap(row)(x)

    traced = trace(program, backend="eager")
    with torch.no_grad():
        for _ in range(CALLS):
            x = torch.randn(2, 3)
            result, expected = traced(x), program(x)
            assert result.requires_grad == expected.requires_grad
            torch.testing.assert_close(result, expected)
