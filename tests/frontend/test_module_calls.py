"""Calls of modules without hooks, of which the frames of torch are passed by."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
import zlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from magweld.frontend import trace
from magweld.frontend.annotations import module_calls
from magweld.frontend.monitor.observer import Observer

CALL_MODULE = nn.modules.module


class Leaf(nn.Module):
    """A module with a number, which takes another one."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def forward(self, x: Tensor, factor: float = 1.0, *, shift: float = 0.0) -> Tensor:
        return x * self.value * factor + shift


class Loud(nn.Module):
    """A module with a call of its own."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs) + 0.5

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) - 1.0


class Tree(nn.Module):
    """Modules below modules, one of them twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(Leaf(1.5), Leaf(2.0))
        self.loud = Loud(self.first[0])
        self.last = Leaf(5.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.loud(self.first(x)), 2.0, shift=1.0)


class Doubled(Leaf):
    """Another class of the same form."""

    def forward(self, x: Tensor, factor: float = 1.0, *, shift: float = 0.0) -> Tensor:
        return super().forward(x, factor, shift=shift) * 2


def nested(tree: Tree, x: Tensor) -> Tensor:
    return tree(x)


def by_function(tree: Tree, x: Tensor) -> Tensor:
    return nn.Module.__call__(tree.last, x) + tree.last._call_impl(x)


def by_forward(tree: Tree, x: Tensor) -> Tensor:
    return tree.last.forward(x) + tree.last(x)


def by_method(tree: Tree, x: Tensor) -> Tensor:
    call = tree.last.__call__
    return call(x, shift=2.0)


def spread(tree: Tree, x: Tensor) -> Tensor:
    arguments, named = [x, 3.0], {"shift": 1.0}
    return tree.last(*arguments, **named) + tree.last(*(y for y in (x, 2.0)))


def mapped(tree: Tree, x: Tensor) -> Tensor:
    return sum(map(tree.last, [x, x + 1])) + sum(map(tree.last.__call__, (x,)))


def partial(tree: Tree, x: Tensor) -> Tensor:
    return functools.partial(tree.last, shift=2.0)(x)


def repeated(tree: Tree, x: Tensor) -> Tensor:
    for number in range(3):
        x = tree.last(x, float(number) - 0.5)
    return x


def wrong_arguments(tree: Tree, x: Tensor) -> Tensor:
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        *((tree.last, ()), (tree.last, (x, 2.0))),
        *((tree.last, (x, 1, 2, 3)), (nested, (tree, x))),
    ]
    for function, args in calls:
        try:
            x = function(*args)
        except TypeError:
            x = x + 1
    return x


def given_twice(tree: Tree, x: Tensor) -> Tensor:
    later = map(tree.last, [x])
    try:
        tree.last(x, **{"self": 2})
    except TypeError:
        x = x - 1
    for y in later:
        x = x + y
    return x


def raising(tree: Tree, x: Tensor) -> Tensor:
    try:
        return tree.last(x, factor=[])  # type: ignore[arg-type]
    except TypeError:
        return tree.last(x) + 3


def branching(tree: Tree, x: Tensor) -> Tensor:
    y = x.sum()
    if y > 100:
        return tree.last(x)
    while y < 20:
        y = tree.last(y + 1)
    return tree.first(x) + y


def made_here(tree: Tree, x: Tensor) -> Tensor:
    own = nn.Sequential(tree.first, nn.ReLU())
    return own(x) + Leaf(0.5)(x)


def hooked_here(tree: Tree, x: Tensor) -> Tensor:
    y = tree.last(x)
    handle = tree.last.register_forward_hook(lambda *args: args[-1] * 7)
    y = y + tree.last(x)
    handle.remove()
    return y + tree.last(x)


PROGRAMS: tuple[Callable[[Tree, Tensor], Tensor], ...] = (
    *(nested, by_function, by_forward, by_method, spread, mapped, partial, repeated),
    *(wrong_arguments, given_twice, raising, branching, made_here, hooked_here),
)


def tripled(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
    return self.forward(*args, **kwargs) * 3


def other_forward(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return x + 9


def others(self: Leaf, x: Tensor, factor: float = 1.0, *, shift: float = 0.0) -> Any:
    return x - factor


def hook(*args: Any) -> Any:
    return args[-1] * 2


def pre_hook(module: nn.Module, args: tuple[Any, ...]) -> Any:
    return (args[0] + 1, *args[1:])


def named_hook(module: nn.Module, args: Any, kwargs: Any, result: Tensor) -> Any:
    return result * (2 + len(kwargs))


def named_pre_hook(module: nn.Module, args: Any, kwargs: Any) -> Any:
    return (args[0] * 4, *args[1:]), kwargs


class Table(OrderedDict[int, Any]):
    """Hooks that are there, but seem not to be."""

    def __bool__(self) -> bool:
        return False


def _globally(m: pytest.MonkeyPatch, name: str, function: Any) -> None:
    m.setitem(getattr(CALL_MODULE, name), -1, function)


def _without_code(m: pytest.MonkeyPatch, function: Any) -> None:
    m.setattr(function, "__code__", tripled.__code__)


# What another call of a module follows from; for all of torch, or a part of the tree.
CHANGES: dict[str, Callable[[Tree, pytest.MonkeyPatch], Any]] = {
    "hook": lambda t, _: t.last.register_forward_hook(hook),
    "pre hook": lambda t, _: t.last.register_forward_pre_hook(pre_hook),
    "named hook": lambda t, _: t.last.register_forward_hook(
        named_hook, with_kwargs=True
    ),
    "named pre hook": lambda t, _: t.last.register_forward_pre_hook(
        named_pre_hook, with_kwargs=True
    ),
    "hook in any case": lambda t, _: t.last.register_forward_hook(
        hook, always_call=True
    ),
    "backward hook": lambda t, _: t.last.register_full_backward_hook(hook),
    "backward pre hook": lambda t, _: t.last.register_full_backward_pre_hook(hook),
    "hook of all": lambda t, m: _globally(m, "_global_forward_hooks", hook),
    "pre hook of all": lambda t, m: _globally(m, "_global_forward_pre_hooks", pre_hook),
    "backward hook of all": lambda t, m: _globally(m, "_global_backward_hooks", hook),
    "hooks of all": lambda t, m: m.setattr(
        CALL_MODULE, "_global_forward_hooks", OrderedDict({1: hook})
    ),
    "other hooks": lambda t, _: setattr(t.last, "_forward_hooks", {3: hook}),
    "hidden hooks": lambda t, _: setattr(t.last, "_forward_hooks", Table({3: hook})),
    "no hooks": lambda t, _: vars(t.last).pop("_forward_pre_hooks"),
    "compiled": lambda t, _: setattr(t.last, "_compiled_call_impl", other_forward),
    "not compiled": lambda t, _: setattr(t.last, "_compiled_call_impl", None),
    "second function": lambda t, m: m.setattr(nn.Module, "_call_impl", tripled),
    "second function of a class": lambda t, m: m.setattr(
        Leaf, "_call_impl", tripled, raising=False
    ),
    "second function of an object": lambda t, _: setattr(
        t.last, "_call_impl", other_forward
    ),
    "code of the first": lambda t, m: _without_code(m, nn.Module.__call__),
    "code of the second": lambda t, m: _without_code(m, nn.Module._call_impl),
    "call of a class": lambda t, m: m.setattr(Leaf, "__call__", tripled, raising=False),
    "call of modules": lambda t, m: m.setattr(nn.Module, "__call__", tripled),
    "forward of an object": lambda t, _: setattr(t.last, "forward", other_forward),
    "forward of a class": lambda t, m: m.setattr(Leaf, "forward", others),
    "static forward": lambda t, m: m.setattr(
        Leaf, "forward", staticmethod(other_forward)
    ),
    "code of forward": lambda t, m: m.setattr(
        Leaf.forward, "__code__", others.__code__
    ),
    "defaults of forward": lambda t, m: m.setattr(Leaf.forward, "__defaults__", (3.0,)),
    "named defaults of forward": lambda t, m: m.setattr(
        Leaf.forward, "__kwdefaults__", {"shift": 4.0}
    ),
    "class": lambda t, _: setattr(t.last, "__class__", Doubled),
    "object": lambda t, _: setattr(t, "last", Leaf(8.0)),
    "attribute": lambda t, _: setattr(t.last, "value", 6.0),
    "look-up": lambda t, m: m.setattr(
        Leaf,
        "__getattribute__",
        lambda self, name: (
            other_forward if name == "forward" else object.__getattribute__(self, name)
        ),
        raising=False,
    ),
    "global": lambda t, m: m.setattr(
        CALL_MODULE,
        "torch",
        types.SimpleNamespace(
            _C=types.SimpleNamespace(_get_tracing_state=lambda: None),
            compiler=torch.compiler,
        ),
    ),
}


def ending(call: Callable[[], Tensor]) -> str:
    """Return what a call gives or raises."""
    try:
        return str(call())
    except (AttributeError, TypeError) as error:
        return repr(error)


# Programs that call modules in other ways read the same of them.
_OFTEN = (nested, by_function, spread)
_EVERYWHERE = ("hook", "hook of all", "compiled", "forward of an object")


@pytest.mark.sample(80)
@pytest.mark.parametrize(
    ("program", "change"),
    [(p, c) for p in PROGRAMS for c in CHANGES if p in _OFTEN or c in _EVERYWHERE],
    ids=lambda part: part if isinstance(part, str) else part.__name__,
)
def test_each_change_is_noticed(
    program: Callable[[Tree, Tensor], Tensor],
    change: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree, x = Tree(), torch.arange(3.0)
    fast = trace(program, backend="eager")
    for _ in range(2):
        assert ending(lambda: fast(tree, x)) == ending(lambda: program(tree, x))
    CHANGES[change](tree, monkeypatch)
    for _ in range(2):
        assert ending(lambda: fast(tree, x)) == ending(lambda: program(tree, x))
    monkeypatch.undo()
    assert ending(lambda: fast(tree, x)) == ending(lambda: program(tree, x))


def either_way(
    monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any]
) -> list[tuple[Any, int]]:
    """Return what a run gives with frames passed by, then without, and its steps."""
    steps, step, found = 0, Observer._step, []

    def counted(*args: Any) -> None:
        nonlocal steps
        steps += 1
        step(*args)

    monkeypatch.setattr(Observer, "_step", counted)
    for known in (module_calls._known_calls(), None):
        monkeypatch.setattr(module_calls, "_known_calls", lambda known=known: known)
        steps = 0
        found.append((run(), steps))
    monkeypatch.undo()
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_guards_are_those_of_an_observed_call(
    program: Callable[[Tree, Tensor], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, x = Tree(), torch.arange(3.0)

    def run() -> Any:
        # Hooks are numbered, and the numbers are guarded.
        monkeypatch.setattr(RemovableHandle, "next_id", 0)
        fast = trace(program, backend="eager")
        for _ in range(2):
            fast(tree, x)
        # But for the line: what a call reads is recorded before it, if it succeeds.
        guards = {
            str(guard._replace(where=""))
            for record in fast.records
            for guard in record.guards
        }
        stats = fast.stats()
        return stats["hits"], [stop.id for stop in fast.breaks], guards

    (short, few), (long, many) = either_way(monkeypatch, run)
    assert short == long
    assert few < many or program in (mapped, branching, given_twice)


class Sized(nn.Module):
    """A module that is given numbers, and gives one."""

    def forward(
        self, x: Tensor, count: int, *more: int, scale: int, **named: int
    ) -> tuple[Tensor, int]:
        total = count + sum(more) + named.get("extra", 0)
        return x[:count] * scale + total, total * scale


class Sizes(nn.Module):
    """A module that hands numbers on to others."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Sized()

    def forward(self, x: Tensor, n: int) -> Any:
        y, total = self.inner(x, n, n + 1, scale=n, extra=2 * n)
        z, _ = self.inner(x, *(n, 1), **{"scale": total})
        length = x.shape[0] if n > 100 else n + x.shape[0]
        return y.sum() + z, self.inner(x, length, scale=1)[1]


def test_numbers_are_followed_into_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Sizes()

    def run() -> Any:
        fast = trace(model, backend="eager")
        for n in range(3, 12):
            x = torch.arange(float(n + 20))
            mine, theirs = fast(x, n), model(x, n)
            assert torch.equal(mine[0], theirs[0])
            assert mine[1] == theirs[1]
        stats = fast.stats()
        return stats["records"], stats["hits"], [str(stop.id) for stop in fast.breaks]

    (short, few), (long, many) = either_way(monkeypatch, run)
    assert short == long
    assert short[1] > 0
    assert few < many


class Broken(nn.Module):
    """A module that calls native code of which nothing is known, and warns."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self.level = level

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        y = y + zlib.crc32(b"speak") % 3
        warnings.warn("from within", stacklevel=self.level)
        return y + 1


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_a_call_that_is_split_has_all_its_frames(
    level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x = nn.Sequential(Leaf(2.0), Broken(level), Leaf(3.0)), torch.ones(2)

    def warned(function: Callable[[Tensor], Tensor]) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = function(x)
        return result.tolist(), [(str(w.message), w.filename) for w in caught]

    def run() -> Any:
        fast = trace(model, backend="eager")
        for _ in range(5):
            assert warned(fast) == warned(model)
        return fast.stats()["hits"], [stop.id for stop in fast.breaks]

    (short, _), (long, _) = either_way(monkeypatch, run)
    assert short == long


def test_the_functions_of_this_torch_are_known() -> None:
    known = module_calls._known_calls()
    assert known is not None, "look at Module.__call__ of this version of torch"


def changed(old: str, new: str) -> Any:
    """Return the second function of torch, as far as it is known, with a change."""
    source = inspect.getsource(module_calls._as_second)
    assert source.count(old) == 1
    namespace: dict[str, Any] = {}
    exec("from typing import Any\n" + source.replace(old, new), namespace)
    return namespace["_as_second"]


_RETURN = "return forward_call(*args, **kwargs)"
CHANGES_OF_TORCH = {
    "other arguments": (_RETURN, "return forward_call(*args)"),
    "written arguments": (_RETURN, f"args = self.more; {_RETURN}"),
    "other function": (_RETURN, "return self.slow(*args, **kwargs)"),
    "further call": (_RETURN, f"self.more(); {_RETURN}"),
    "other result": (_RETURN, f"{_RETURN} + 1"),
    "other question": ("_get_tracing_state()", "_is_tracing()"),
    "other test": ("self._forward_hooks", "self.training"),
    "further test": ("if not (", "if not (self.training or "),
    "missing test": ("or _global_backward_hooks", ""),
    "other variable": ("or _global_backward_hooks", "or _global_hooks"),
    "other outcome": ("if not (", "if ("),
    "no names": ("**kwargs: Any)", "kwargs: Any)"),
    "caught": (_RETURN, f"\n            try: {_RETURN}\n            finally: pass"),
    "given later": (_RETURN, f"yield; {_RETURN}"),
}


def test_what_lies_behind_the_first_return_may_be_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    function = changed("raise NotImplementedError", "return [args for _ in kwargs]")
    monkeypatch.setattr(nn.Module, "_call_impl", function)
    assert module_calls._known_calls.__wrapped__() is not None


@pytest.mark.parametrize("change", CHANGES_OF_TORCH)
def test_a_function_of_another_form_is_not_known(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = changed(*CHANGES_OF_TORCH[change])
    monkeypatch.setattr(nn.Module, "_call_impl", function)
    assert module_calls._known_calls.__wrapped__() is None
