"""`Module.modules`, whose walk is recorded as a whole when it begins."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from magweld.frontend import trace
from magweld.frontend.annotations import torch_modules
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules import comparisons

WEIGHT = 2.0


class Leaf(nn.Module):
    """A module with a number, that is true or not."""

    def __init__(self, value: float, truth: bool = True) -> None:
        super().__init__()
        self.value = value
        self.truth = truth

    def __bool__(self) -> bool:
        return self.truth


class Tree(nn.Module):
    """Modules below modules, one of them twice, one of them missing."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(Leaf(1.0), Leaf(2.0, truth=False))
        self.second = nn.ModuleList([Leaf(3.0), self.first[0]])
        self.missing: nn.Module | None
        self.register_module("missing", None)
        self.last = Leaf(5.0)


def values_of(modules: Any) -> float:
    total = 0.0
    for module in modules:
        total = total * 2 + getattr(module, "value", 1.0)
    return total


def weighted(module: nn.Module) -> float:
    return WEIGHT * getattr(module, "value", 1.0)


def hooks(tree: Tree, x: Tensor) -> Tensor:
    if any(len(getattr(m, "_forward_hooks", {})) for m in tree.modules()):
        return -x
    return x + 1


def every(tree: Tree, x: Tensor) -> Tensor:
    return x * values_of(list(tree.modules()))


def true_ones(tree: Tree, x: Tensor) -> Tensor:
    return x * values_of(filter(None, tree.modules()))


def early_end(tree: Tree, x: Tensor) -> Tensor:
    for module in tree.modules():
        x = x + getattr(module, "value", 0.0)
        if module is tree.first[0]:
            break
    return x


def nested(tree: Tree, x: Tensor) -> Tensor:
    for module in tree.modules():
        x = x + sum(1 for _ in module.modules()) * 2
    return x


def halfway(tree: Tree, x: Tensor) -> Tensor:
    walk = tree.modules()
    next(walk)
    x = x * values_of([next(walk), next(walk)])
    return x + values_of(walk)


def closed(tree: Tree, x: Tensor) -> Tensor:
    walk = tree.modules()
    next(walk)
    walk.close()
    return x + len(list(walk))


def mapped(tree: Tree, x: Tensor) -> Tensor:
    return x * sum(map(weighted, tree.modules()))


def ordered(tree: Tree, x: Tensor) -> Tensor:
    return x * values_of(sorted(tree.modules(), key=weighted))


def raising(tree: Tree, x: Tensor) -> Tensor:
    try:
        for module in tree.modules():
            x = x + 1 / (getattr(module, "value", 1.0) - 1.5)
            if isinstance(module, Leaf):
                raise KeyError(module.value)
    except KeyError as error:
        x = x * error.args[0]
    return x


def made_here(tree: Tree, x: Tensor) -> Tensor:
    own = nn.Sequential(tree.first, nn.ReLU())
    return x * values_of(own.modules())


PROGRAMS: tuple[Callable[[Tree, Tensor], Tensor], ...] = (
    *(hooks, every, true_ones, early_end, nested, halfway, closed, mapped, ordered),
    *(raising, made_here),
)


def _walk_alone(module: Any, *args: Any, **named: Any) -> Iterator[tuple[str, Any]]:
    yield "", module


def _module_alone(module: Any, _: Any = None) -> Iterator[Any]:
    yield module


def _other_order(tree: Tree) -> None:
    tree.first._modules = OrderedDict(reversed(tree.first._modules.items()))


CHANGES: dict[str, Callable[[Tree, pytest.MonkeyPatch], Any]] = {
    "hook": lambda t, _: t.last.register_forward_hook(lambda *args: None),
    "added": lambda t, _: t.second.append(Leaf(7.0)),
    "replaced": lambda t, _: setattr(t, "last", Leaf(8.0)),
    "removed": lambda t, _: t.first.pop(1),
    "present": lambda t, _: setattr(t, "missing", Leaf(9.0)),
    "another": lambda t, _: t.second.__setitem__(1, Leaf(1.0)),
    "the same": lambda t, _: setattr(t, "last", t.second[0]),
    "order": lambda t, _: _other_order(t),
    "number": lambda t, _: setattr(t.second[0], "value", 4.0),
    "truth": lambda t, _: setattr(t.last, "truth", False),
    "truth of a class": lambda t, m: m.setattr(Leaf, "__bool__", lambda self: False),
    "walk of a class": lambda t, m: m.setattr(
        nn.Sequential, "named_modules", _walk_alone, raising=False
    ),
    "walk of an object": lambda t, _: setattr(
        t.first, "named_modules", lambda *args: iter([("", t.last)])
    ),
    "defaults": lambda t, m: m.setattr(
        nn.Module.named_modules, "__defaults__", (None, "", False)
    ),
    "code": lambda t, m: m.setattr(
        nn.Module.modules, "__code__", _module_alone.__code__
    ),
    "global": lambda t, m: m.setitem(globals(), "WEIGHT", 3.0),
    "builtin": lambda t, m: m.setitem(
        vars(nn.modules.module), "set", lambda: {t.last, t.first}
    ),
    "equality": lambda t, m: m.setattr(
        Leaf, "__eq__", lambda self, other: isinstance(other, Leaf)
    ),
}


def _hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a class with an equality of its own have a hash."""
    monkeypatch.setattr(Leaf, "__hash__", lambda self: 1)


@pytest.mark.sample(110)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_each_change_is_noticed(
    program: Callable[[Tree, Tensor], Tensor],
    change: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree, x = Tree(), torch.arange(3.0)
    fast = trace(program, backend="eager")
    for _ in range(3):
        assert torch.equal(fast(tree, x), program(tree, x))
    CHANGES[change](tree, monkeypatch)
    if change == "equality":
        _hashes(monkeypatch)
    for _ in range(3):
        try:
            expected = program(tree, x)
        except StopIteration:
            with pytest.raises(StopIteration):
                fast(tree, x)
        else:
            assert torch.equal(fast(tree, x), expected)


@pytest.mark.parametrize("program", PROGRAMS[:-1], ids=lambda program: program.__name__)
def test_the_guards_are_those_of_an_observed_walk(
    program: Callable[[Tree, Tensor], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, step = 0, Observer._step

    def counted(*args: Any) -> None:
        nonlocal steps
        steps += 1
        step(*args)

    monkeypatch.setattr(Observer, "_step", counted)
    tree, x, found = Tree(), torch.arange(3.0), []
    for known in (True, False):
        monkeypatch.setattr(torch_modules, "_IS_KNOWN", known)
        steps, fast = 0, trace(program, backend="eager")
        fast(tree, x)
        taken = steps
        fast(tree, x)
        # But for the line: one is where the walk begins, the other where it goes on.
        guards = {
            str(guard._replace(where=""))
            for record in fast.records
            for guard in record.guards
        }
        found.append((fast.stats()["hits"], guards, taken))
    (hits, short, few), (same, long, many) = found
    assert hits == same
    assert hits == 1 or program not in (hooks, every, nested, halfway, mapped)
    assert few < many
    # A walk that ends early has read less.
    assert short >= long
    assert short == long or program in (early_end, closed, raising)


def grows_before(tree: Tree, x: Tensor) -> Tensor:
    tree.second.append(nn.ReLU())
    return x * values_of(tree.modules())


def grows_behind(tree: Tree, x: Tensor) -> Tensor:
    y = x * values_of(tree.modules())
    tree.second.append(nn.ReLU())
    return y


def grows_meanwhile(tree: Tree, x: Tensor) -> Tensor:
    walk = tree.modules()
    next(walk)
    tree.last = Leaf(x.shape[0] + 0.5)
    tree.second.append(Leaf(0.25))
    return x * values_of(walk)


def counts(tree: Tree, x: Tensor) -> Tensor:
    for module in tree.modules():
        module.steps = getattr(module, "steps", 0) + 1
    return x * tree.last.steps


@pytest.mark.parametrize(
    "program", [grows_before, grows_behind, grows_meanwhile, counts]
)
def test_modules_that_change_within_the_call(
    program: Callable[[Tree, Tensor], Tensor],
) -> None:
    mine, theirs, x = Tree(), Tree(), torch.arange(3.0)
    fast = trace(program, backend="eager")
    for _ in range(4):
        assert torch.equal(fast(mine, x), program(theirs, x))
        assert values_of(mine.modules()) == values_of(theirs.modules())
        assert len(list(mine.modules())) == len(list(theirs.modules()))


def test_a_search_in_a_set_asks_each_class_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that a walk has met are in a set, in which it looks for each module."""
    asked = 0
    special_method = comparisons.special_method

    def counted(*args: Any) -> Any:
        nonlocal asked
        asked += 1
        return special_method(*args)

    def program(model: nn.Module, x: Tensor) -> Tensor:
        return x + sum(1 for _ in model.named_modules())

    monkeypatch.setattr(comparisons, "special_method", counted)
    model, x = nn.ModuleList(nn.ReLU() for _ in range(60)), torch.zeros(2)
    fast = trace(program, backend="eager")
    for _ in range(2):
        assert torch.equal(fast(model, x), x + 61)
    assert fast.stats()["hits"] == 1
    # For the set, the module list and the others.
    assert 61 <= asked <= 3 * 61
