"""A traced function, method or callable object looks and binds as the original."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
from types import FunctionType
from typing import Any

import pytest
import torch
from torch import Tensor

from magweld.frontend import Traced, annotated, trace

X = torch.randn(3, 4)
eager = functools.partial(trace, backend="eager")


@eager
def decorated(x: Tensor, factor: float = 2.0) -> Tensor:
    """Multiply."""
    return x * factor


def plain(x: Tensor, factor: float = 2.0) -> Tensor:
    """Multiply."""
    return x * factor


def test_metadata_is_the_function_s() -> None:
    fast = eager(plain)
    names = ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__")
    for name in (*names, "__defaults__", "__code__"):
        assert getattr(fast, name) == getattr(plain, name), name
    assert inspect.unwrap(fast) is plain
    assert inspect.signature(fast) == inspect.signature(plain)
    assert inspect.getsource(fast) == inspect.getsource(plain)
    assert inspect.getdoc(fast) == "Multiply."
    assert isinstance(fast, FunctionType)
    assert isinstance(fast, Traced)
    assert {"stats", "records", "__code__"} <= set(dir(fast))
    assert len(repr(fast)) < 80


def test_attributes_are_the_function_s() -> None:
    def program(x: Tensor) -> Tensor:
        return x + 1

    fast = eager(program)
    fast.tag = 1
    assert program.tag == 1  # type: ignore[attr-defined]
    program.tag = 2  # type: ignore[attr-defined]
    assert fast.tag == 2
    assert functools.wraps(fast)(lambda: None).tag == 2  # type: ignore[attr-defined]
    del fast.tag
    assert not hasattr(program, "tag")


def test_pickles_know_a_decorated_function_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    other = pickle.loads(pickle.dumps(eager(plain, dynamic=False)))
    torch.testing.assert_close(other(X), plain(X))
    again = copy.copy(other)
    assert again._magweld_options["dynamic"] is False
    assert again._magweld_options["backend"] == "eager"


def test_copies_keep_the_annotations_that_were_in_force() -> None:
    from magweld.frontend import annotate

    item = annotate(ord, pure_closure=True)
    with annotated(item):
        fast = eager(plain)
    assert copy.deepcopy(fast)._magweld_options["annotations"] == (item,)


class Methods:
    factor = 3.0

    @eager
    def scale(self, x: Tensor) -> Tensor:
        return x * self.factor

    @eager
    @torch.no_grad()
    def quiet(self, x: Tensor) -> Tensor:
        return x * self.factor

    @property
    @eager
    def three(self) -> Tensor:
        return torch.ones(1) * self.factor

    @eager
    @functools.lru_cache  # noqa: B019
    def cached(self, x: int) -> int:
        return x + 1

    @eager
    def scaled_by(self, by: float, x: Tensor) -> Tensor:
        return x * self.factor * by

    twice = functools.partialmethod(scaled_by, 2.0)


class Derived(Methods):
    def scale(self, x: Tensor) -> Tensor:
        return super().scale(x) + 1


def test_whatever_binds_is_bound() -> None:
    methods = Methods()
    for _ in range(2):
        torch.testing.assert_close(methods.scale(X), X * 3)
        torch.testing.assert_close(methods.quiet(X), X * 3)
        torch.testing.assert_close(methods.twice(X), X * 6)
        torch.testing.assert_close(Derived().scale(X), X * 3 + 1)
        assert methods.three.item() == 3.0
        assert methods.cached(1) == 2
    assert methods.scale.__self__ is methods
    assert methods.scale.__name__ == "scale"
    assert pickle.loads(pickle.dumps(Methods.scale)) is Methods.scale


class Scaled:
    def __init__(self) -> None:
        self.factor = 2.0

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.factor

    def __len__(self) -> int:
        return 7

    def __getitem__(self, index: int) -> int:
        return index


def test_callable_objects_keep_special_methods_and_do_not_bind() -> None:
    scaled = Scaled()
    fast = eager(scaled)
    assert (len(fast), fast[3]) == (7, 3)
    assert isinstance(fast, Scaled)

    class Holder:
        call = fast

    torch.testing.assert_close(Holder().call(X), X * 2)
    fast.factor = 4.0
    torch.testing.assert_close(fast(X), X * 4)
    assert scaled.factor == 4.0


def test_tracing_twice_traces_the_original() -> None:
    once = eager(plain)
    assert eager(once)._magweld_target is plain


def test_a_forward_that_is_a_traced_method() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)
            self.forward: Any = eager(self.forward)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x)

    model = Model()
    other = copy.deepcopy(model)
    assert other.forward._magweld_target.__self__ is other
    for _ in range(2):
        torch.testing.assert_close(other(X), model.layer(X))


class First:
    def __call__(self, x: Tensor) -> Tensor:
        return x + 1


class Second:
    def __call__(self, x: Tensor) -> Tensor:
        return x + 2


def test_a_class_that_is_replaced_is_noticed() -> None:
    called: Any = First()
    fast = eager(called)
    for cls in (First, First, Second, Second, First):
        called.__class__ = cls
        torch.testing.assert_close(fast(X), called(X))


def test_a_nested_tensor_is_not_asked_for_its_strides() -> None:
    fast = eager(lambda x: x * 2)
    for _ in range(2):
        fast(X)
    nested = torch.nested.as_nested_tensor([X, X])
    assert fast(nested).is_nested
    assert "nested" in str(fast.breaks[0])


@pytest.mark.parametrize(
    ("dynamic", "text"),
    [
        ({"typo": True}, "no 'typo'"),
        ({"fector": True}, "did you mean 'factor'"),
        ({"item(y)": True}, "no 'y'"),
        ({"x": "rows"}, "expected a bool or dimensions"),
        ({0: True}, "expected a name"),
    ],
)
def test_unknown_names_in_dynamic(dynamic: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        eager(plain, dynamic=dynamic)


class Steps(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def forward(self, x: Tensor, box: Any = None) -> Tensor:
        self.late = box.v if box else 1
        return x * self.step


def test_attributes_in_dynamic() -> None:
    for name in ("self.step", "self.late", "box.v", "x.shape[0]", "args[0].shape[0]"):
        eager(Steps(), dynamic={name: True})
    with pytest.raises(ValueError, match="did you mean 'step'"):
        eager(Steps(), dynamic={"self.stepp": True})


def test_an_attribute_of_an_argument_is_lifted_by_name() -> None:
    class Box:
        v = 2

    fast = eager(lambda x, box: x * box.v, dynamic={"box.v": True})
    box: Any = Box()
    for box.v in (2, 3, 4, 5):
        torch.testing.assert_close(fast(X, box), X * box.v)
    assert fast.stats()["records"] == 1
