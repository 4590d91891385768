"""What native code takes for tensors of known forms, torch takes for such as well."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from magweld import frontend
from magweld import tensor_words as words_module
from magweld.frontend.guards import forms
from magweld.frontend.guards.forms import QuickCheck, quick_check, torch_guards
from magweld.tensor_words import tensor_words

SHAPE = (2, 3, 4)


class _Sub(Tensor):
    pass


def plain(*shape: int, **options: Any) -> Tensor:
    return torch.ones(shape or SHAPE, **options)


def leaf() -> Tensor:
    return plain().requires_grad_()


def turned_off() -> Tensor:
    return leaf().requires_grad_(False)


def late_view() -> Tensor:
    """A view of what wanted no gradients when the view was made."""
    base = plain()
    view = base.view(SHAPE)
    base.requires_grad_()
    return view


def freed() -> Tensor:
    found = plain()
    found.untyped_storage().resize_(0)
    return found


def no_grad_view() -> Tensor:
    with torch.no_grad():
        return leaf()[:]


def inferred() -> Tensor:
    with torch.inference_mode():
        return plain()


def csr() -> Tensor:
    return plain(2, 3).to_sparse_csr()


def nested() -> Tensor:
    parts = [torch.ones(3, 4), torch.ones(3, 4)]
    return torch.nested.nested_tensor(parts)


def jagged() -> Tensor:
    parts = [torch.ones(3, 4), torch.ones(2, 4)]
    return torch.nested.nested_tensor(parts, layout=torch.jagged)


def hooked() -> Tensor:
    found = leaf()
    found.register_hook(lambda grad: grad)
    return found


def with_grad() -> Tensor:
    found = leaf()
    found.sum().backward()
    return found


def moved() -> Tensor:
    """The same object with the form of another one."""
    found = plain()
    found.data = plain(3, 2, 4)
    return found


MAKERS: dict[str, Callable[[], Tensor]] = {
    "plain": plain,
    "clone": lambda: plain().clone(),
    "detached": lambda: leaf().detach(),
    "data": lambda: leaf().data,
    "at an offset": lambda: plain(5, 3, 4)[2:4],
    "parameter": lambda: nn.Parameter(plain()),
    "frozen parameter": lambda: nn.Parameter(plain(), requires_grad=False),
    "buffer": lambda: nn.Buffer(plain()),
    "leaf": leaf,
    "turned off": turned_off,
    "computed": lambda: leaf() * 2,
    "computed and detached": lambda: (leaf() * 2).detach_(),
    "hooked": hooked,
    "with a gradient": with_grad,
    "view": lambda: plain()[:],
    "view of a leaf": lambda: leaf()[:],
    "view without gradients": no_grad_view,
    "view of a late leaf": late_view,
    "double": lambda: plain(dtype=torch.float64),
    "integers": lambda: plain(dtype=torch.int32),
    "bytes": lambda: plain(dtype=torch.uint8),
    "halves": lambda: plain(dtype=torch.float16),
    "meta": lambda: plain(device="meta"),
    "transposed": lambda: plain(2, 4, 3).transpose(1, 2),
    "expanded": lambda: plain(1, 3, 4).expand(*SHAPE),
    "strided": lambda: plain(2, 3, 8)[:, :, ::2],
    "larger": lambda: plain(2, 3, 5),
    "fewer dimensions": lambda: plain(6, 4),
    "more dimensions": lambda: plain(1, *SHAPE),
    "six dimensions": lambda: plain(1, 1, 1, *SHAPE),
    "other six dimensions": lambda: plain(1, 2, 1, 3, 4, 1),
    "scalar": lambda: torch.tensor(1.0),
    "empty": lambda: plain(0, 3, 4),
    "other empty": lambda: plain(0, 4, 3),
    "complex": lambda: plain(dtype=torch.complex64),
    "conjugate": lambda: plain(dtype=torch.complex64).conj(),
    "imaginary": lambda: plain(dtype=torch.complex64).conj().imag,
    "negated": lambda: torch._neg_view(plain()),
    "inference": inferred,
    "sparse": lambda: plain().to_sparse(),
    "csr": csr,
    "mkldnn": lambda: plain().to_mkldnn(),
    "nested": nested,
    "jagged": jagged,
    "quantized": lambda: torch.quantize_per_tensor(plain(), 0.5, 1, torch.quint8),
    "subclass": lambda: plain().as_subclass(_Sub),
    "functional": lambda: torch._to_functional_tensor(plain()),
    "shared": lambda: plain().share_memory_(),
    "copy on write": lambda: torch._lazy_clone(plain()),
    "of an array": lambda: torch.from_numpy(plain().numpy().copy()),
    "freed": freed,
    "moved": moved,
    "channels last": lambda: plain(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "four dimensions": lambda: plain(2, 3, 4, 5),
}


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def check_for(tensor: Tensor) -> QuickCheck | None:
    """Return a check of a tensor and three others, which never change."""
    return quick_check([tensor, *OTHERS], [frozenset()] * 4)


OTHERS = [torch.ones(size + 1) for size in range(3)]


def holds(check: QuickCheck, tensor: Tensor) -> bool:
    """Return what guards find."""
    given = [tensor, *OTHERS]
    asked = [given[number] for number in check.asked]
    return (
        check.alike(*given)
        and not any(one.is_nested for one in asked[: check.others])
        and check.check(*asked)
    )


def test_words_are_known() -> None:
    assert tensor_words() is not None, "a new version of torch: read its TensorImpl.h"


# Guards of torch end the process when they are made for these.
_NEVER = ("nested", "jagged", "csr")


@pytest.mark.parametrize("name", [n for n in MAKERS if n not in _NEVER])
def test_nothing_is_taken_for_alike_that_torch_tells_apart(name: str) -> None:
    recorded = MAKERS[name]()
    check = check_for(recorded)
    assert check is not None
    torchs = torch_guards([recorded, *OTHERS], [frozenset()] * 4)
    assert holds(check, recorded)
    for other, make in MAKERS.items():
        tensor = make()
        if tensor.is_nested:
            assert not holds(check, tensor), other
        elif holds(check, tensor):
            assert torchs.check(tensor, *OTHERS), other
        else:
            # What differs to native code alone is asked of torch, as before.
            assert other in _OFTEN_ASKED or not torchs.check(tensor, *OTHERS), other


# Views of what they are like.
_OFTEN_ASKED = tuple(n for n in MAKERS if n.startswith("view") or n == "at an offset")


def test_any_object_is_taken() -> None:
    check = check_for(plain())
    assert check is not None
    assert check.alike(plain(), *OTHERS) is True
    for other in (None, 1, "x", object(), Tensor, nn.Linear(2, 2)):
        assert check.alike(other, *OTHERS) is False
    assert check.alike(plain(), *OTHERS[:2]) is False
    assert check.alike() is False


def test_an_object_that_comes_twice_is_told() -> None:
    for count in (4, 50, 500):
        tensors = [plain() for _ in range(count)]
        check = quick_check(tensors, [frozenset()] * count)
        assert check is not None
        assert check.alike(*tensors)
        for position in (0, count // 2, count - 2):
            given = [*tensors]
            given[position] = tensors[-1]
            assert not check.alike(*given)
            given[position] = plain()
            assert check.alike(*given)


def test_lifted_dimensions_are_asked_of_torch() -> None:
    tensors = [plain() for _ in range(5)]
    check = quick_check(tensors, [frozenset({1}), *[frozenset[int]()] * 4])
    assert check is not None
    assert (check.asked, check.others) == ((0, 1), 1)
    for size, fits in ((7, True), (1, True)):
        given = [plain(2, size, 4), *tensors[1:]]
        assert check.alike(*given)
        assert check.check(given[0], given[1]) is fits
    given = [plain(3, 3, 4), *tensors[1:]]
    assert not check.check(given[0], given[1])
    assert not check.alike(tensors[1], *tensors[1:])


def test_what_a_thread_does_to_dispatch_keys_is_told() -> None:
    tensors = [plain() for _ in range(4)]
    check = quick_check(tensors, [frozenset()] * 4)
    assert check is not None
    found: list[bool] = []

    def inside(x: Tensor) -> Tensor:
        asked = [tensors[number] for number in check.asked]
        found.append(check.alike(*tensors) and check.check(*asked))
        return x

    torch.func.vmap(inside)(plain())
    torch.func.grad(lambda x: inside(x).sum())(plain())
    torch.func.functionalize(inside)(plain())
    assert found == [False] * 3


def test_few_tensors_are_asked_of_torch_alone() -> None:
    assert quick_check([plain(), plain()], [frozenset()] * 2) is None
    assert quick_check([nested(), *map(plain, range(1, 3))], [frozenset()] * 3) is None


def test_no_reference_is_kept_or_lost() -> None:
    import sys

    tensors = [plain() for _ in range(20)]
    check = quick_check(tensors, [frozenset()] * 20)
    assert check is not None
    before = [sys.getrefcount(one) for one in (*tensors, True, False)]
    for _ in range(1000):
        check.alike(*tensors)
        check.alike(*tensors[1:])
    after = [sys.getrefcount(one) for one in (*tensors, True, False)]
    assert after[:20] == before[:20]
    assert max(abs(a - b) for a, b in zip(after, before, strict=True)) < 100


def several(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """Add tensors."""
    return a + b + c + d


@pytest.mark.parametrize("name", [n for n in MAKERS if n != "freed"])
def test_calls_give_what_eager_gives(name: str) -> None:
    """Each kind of tensor as an argument of a program that was recorded for another."""
    fast = frontend.trace(several, backend="eager")
    others = [plain() for _ in range(3)]
    for _ in range(3):
        fast(plain(), *others)
    assert fast.stats()["hits"] == 2
    for position in range(4):
        given = [*others]
        given.insert(position, MAKERS[name]())
        try:
            expected = several(*given)
        except Exception as error:
            with pytest.raises(type(error)):
                fast(*given)
            continue
        found = fast(*given)
        assert type(found) is type(expected)
        assert found.requires_grad == expected.requires_grad
        if not expected.is_meta and expected.layout is torch.strided:
            assert found.is_nested == expected.is_nested
        if not (expected.is_meta or expected.is_nested or name == "functional"):
            torch.testing.assert_close(found, expected)


def test_forward_gradients_are_told() -> None:
    fast = frontend.trace(several, backend="eager")
    others = [plain() for _ in range(3)]
    for _ in range(3):
        fast(plain(), *others)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(plain(), plain())
        found = fast(dual, *others)
        assert forward_ad.unpack_dual(found).tangent is not None


def test_parameters_that_change_are_told() -> None:
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(3)]).requires_grad_(False)
    fast = frontend.trace(model, backend="eager")
    x = plain(2, 4)
    for _ in range(5):
        fast(x)
    hits = fast.stats()["hits"]
    model[1].weight.requires_grad_(True)
    assert fast(x).requires_grad
    model[1].weight.requires_grad_(False)
    assert not fast(x).requires_grad
    model[2].bias.data = torch.zeros(4, dtype=torch.float64)
    with pytest.raises(RuntimeError):
        model(x)
    with pytest.raises(RuntimeError):
        fast(x)
    model[2].bias.data = torch.zeros(1)
    torch.testing.assert_close(fast(x), model(x))
    model[2].bias.data = torch.full((4,), 7.0)
    torch.testing.assert_close(fast(x), model(x))
    assert fast.stats()["hits"] > hits


def test_other_versions_of_torch_are_asked_about_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "__version__", "2.99.0")
    assert tensor_words.__wrapped__() is None
    monkeypatch.setattr(forms, "tensor_words", lambda: None)
    assert check_for(plain()) is None
    fast = frontend.trace(several, backend="eager")
    others = [plain() for _ in range(3)]
    for make in (plain, leaf, nested, plain):
        given = [make(), *others] if make is not nested else [make() for _ in range(4)]
        found, expected = fast(*given), several(*given)
        assert found.is_nested == expected.is_nested
        assert found.requires_grad == expected.requires_grad


def test_words_of_another_layout_are_not_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = words_module.words_of
    for first, second in ((8, 13), (7, 19), (21, 20), (8, 9)):

        def swapped(tensor: Tensor, one: int = first, other: int = second) -> Any:
            words = list(read(tensor))
            words[one], words[other] = words[other], words[one]
            return tuple(words)

        monkeypatch.setattr(words_module, "words_of", swapped)
        assert tensor_words.__wrapped__() is None, (first, second)
    monkeypatch.setattr(words_module, "words_of", read)
    assert tensor_words.__wrapped__() == tensor_words()


def test_without_threads_torch_is_asked_about_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert tensor_words.__wrapped__() is None


def test_threads_ask_at_once() -> None:
    tensors = [plain() for _ in range(30)]
    check = quick_check(tensors, [frozenset()] * 30)
    assert check is not None
    found: list[bool] = []

    def ask() -> None:
        found.extend(bool(check.alike(*tensors)) for _ in range(500))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 2000
