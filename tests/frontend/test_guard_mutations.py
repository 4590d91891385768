"""Every category of guards is needed: without it, a hit differs from eager."""

from __future__ import annotations

import pytest
import torch

from magweld.frontend.guards.guard import Category
from magweld.frontend.guards.listing import Listing

X = "torch.tensor([1.0, 2.0])"
GRAD = "torch.set_grad_enabled"

# Category: state, body of the program, calls ("change | arguments").
CASES = {
    Category.ARGUMENT: ("", "return x * v", [f"{X}, 2.0", f"{X}, 3.0"]),
    Category.STATE: (
        "",
        "return torch.is_grad_enabled(), x + 1",
        [f"{GRAD}(True) | {X}", f"{GRAD}(False) | {X}"],
    ),
    Category.CLASS: (
        "class A:\n    factor = 2.0\na = A()",
        "return x * a.factor",
        [X, f"A.factor = 3.0 | {X}"],
    ),
    Category.VALUE: ("G = 2.0", "return x * G", [X, f"G = 3.0 | {X}"]),
    Category.IDENTITY: (
        "def g(x): return x\ndef h(x): return -x",
        "return g(x) + 1",
        [X, f"g = h | {X}"],
    ),
    Category.TYPE: (
        "class A: pass\nclass B: pass\nL = [A()]",
        "return x if type(L[0]) is A else -x",
        [X, f"L[0] = B() | {X}"],
    ),
    Category.CONTENT: ("L = [1]", "return x * len(L)", [X, f"L.append(2) | {X}"]),
    Category.ABSENCE: ("D = {}", "return x * D.get('a', 2)", [X, f"D['a'] = 5 | {X}"]),
    Category.ALIAS: (
        "A = []; B = []",
        "return x if v[0] is v[1] else -x",
        [f"{X}, [A, A]", f"{X}, [A, B]"],
    ),
    Category.TENSOR: ("", "return x * x.shape[0]", ["torch.ones(2)", "torch.ones(3)"]),
    Category.EXPRESSION: (
        "",
        "return x + v if v > 2 else x - v",
        [f"{X}, {number}.0" for number in (3, 4, 5, 6, 7, 8, 1)],
    ),
    Category.PREDICATE: (
        "",
        "return x if x.sum() > 0 else -x * 2",
        ["torch.ones(2)", "-torch.ones(2)"],
    ),
}


@pytest.fixture(autouse=True)
def grad_mode():
    with torch.set_grad_enabled(True):
        yield


def without(monkeypatch, disabled):
    """Build guards of one category without their tests."""
    original = Listing.guard

    def guard(self, category, path, expected, where, *statements, **more):
        if category is disabled:
            more["test"] = None
        original(self, category, path, expected, where, *statements, **more)

    monkeypatch.setattr(Listing, "guard", guard)


@pytest.mark.parametrize("category", Category)
def test_a_category_that_is_left_out_is_noticed(category, monkeypatch, beside_twin):
    difference, traced = beside_twin(*CASES[category])
    assert difference is None, f"{difference}\n{traced.explain()}"
    torch.set_grad_enabled(True)
    without(monkeypatch, category)
    difference, _ = beside_twin(*CASES[category])
    assert difference is not None
