"""numpy: arrays and numbers are guarded by value, results are constants."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from magweld.frontend.traced import trace


def reductions(x, s):
    return x * float(s.sum()) + int(np.floor(s[0])) + float(np.mean(s)), s.shape, len(s)


def expressions(x, s):
    t = s * 2 + 1
    chosen = t[t > 3]
    return (
        x * float(chosen.max()),
        t,
        np.concatenate([s, t]),
        s.tolist(),
        (s == s).all(),
    )


def made(x, s):
    return x * 2.0, np.zeros((2,)), np.arange(3), np.linspace(0, 1, 3), np.array([s[0]])


def to_torch(x, s):
    return x * torch.tensor(s), torch.tensor(np.sqrt(s[0])), torch.tensor(s > 1.0)


def written(x, s):
    t = s.copy()
    t[0] = 9.0
    t += 1
    view = t[1:]
    view[0] = 5.0
    return x * float(t[0]), t


def iterated(x, s):
    return x * sum(float(v) for v in s), [int(v) for v in s], s.reshape(-1).tolist()


ARRAYS = [reductions, expressions, made, to_torch, written, iterated]


@pytest.mark.parametrize("program", ARRAYS, ids=lambda program: program.__name__)
def test_arrays(follow, program):
    follow(
        program,
        lambda: np.array([1.0, 2.0, 3.0]),
        lambda: np.array([1.0, 2.0, 4.0]),
        lambda: np.array([1.0, 2.0, 4.0], dtype=np.float32),
    )


def numbers(x, s):
    return x * s, s + 1, float(s), int(s), s.item(), np.sqrt(s), s.dtype, s > 2, f"{s}"


def test_numbers(follow):
    follow(
        numbers,
        lambda: np.float32(1.5),
        lambda: np.float64(1.5),
        lambda: np.int64(2),
        lambda: np.float32(-0.0),
        lambda: np.float32(0.0),
    )


def indices(x, s):
    return x[s], [1.0, 2.0, 3.0][s], x.view(s * 0 + 3), range(s)


def test_indices(follow):
    follow(indices, lambda: np.int64(1), lambda: np.int64(2), lambda: np.int32(2))


def reads_tensor(x, s):
    return x * float(np.sum(x.numpy()))


def fills(x, s):
    return x * float(np.add(s, 1.0, out=s)[0])


def writes(x, s):
    s[0] = 9.0
    return x * float(s[0])


def writes_view(x, s):
    s[1:][0] += 9.0
    return x * float(s[1])


def writes_tensor(x, s):
    first = float(s[0])
    x.mul_(first)
    return x * float(s[0])


REFUSED = [reads_tensor, fills, writes, writes_view, writes_tensor]


@pytest.mark.parametrize("program", REFUSED, ids=lambda program: program.__name__)
def test_what_has_no_constant_result_splits_the_program(program):
    traced = trace(program, backend="eager")
    for _ in range(5):
        results = []
        for run in (traced, program):
            np.random.seed(3)
            s = np.array([1.0, 2.0, 3.0], dtype=np.float32)
            results.append((run(torch.ones(3), s), s.tolist()))
        assert torch.equal(results[0][0], results[1][0])
        assert results[0][1] == results[1][1]
    assert traced.breaks
