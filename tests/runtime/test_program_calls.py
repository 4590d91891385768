from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from magweld.artifact import (
    Place,
    Program,
)
from magweld.runtime.admission import Admission
from magweld.runtime.errors import InputMismatchError
from magweld.runtime.frame import RunExternal
from magweld.runtime.program import LoadedProgram

INPUT, ARENA, OUTPUT = Place.INPUT, Place.ARENA, Place.OUTPUT
VIEW, ADOPTED, CONSTANT = Place.VIEW, Place.ADOPTED, Place.CONSTANT
SHAPE = (4, 8)


@pytest.mark.parametrize("called_before", [False, True])
@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (torch.zeros(8, 4), "has shape"),
        (torch.zeros(SHAPE, dtype=torch.float64), "has dtype"),
        (torch.zeros(8, 4).t(), "strides"),
        (torch.zeros(SHAPE, device="meta"), "is on meta"),
        (torch.zeros(SHAPE).to_sparse(), "layout"),
        (torch._neg_view(torch.zeros(SHAPE)), "negated"),
        ([0.0] * 32, "is a list"),
    ],
)
def test_wrong_arguments_are_refused(
    no_externals: RunExternal,
    chain_program: Program,
    argument: Any,
    message: str,
    called_before: bool,
) -> None:
    loaded = LoadedProgram(chain_program, no_externals)
    if called_before:
        loaded([torch.zeros(SHAPE)])
    with pytest.raises(InputMismatchError, match=message) as caught:
        loaded([argument])
    assert caught.value.index == 0


def test_wrong_number_of_arguments_is_refused(
    no_externals: RunExternal, chain_program: Program
) -> None:
    loaded = LoadedProgram(chain_program, no_externals)
    for _ in range(2):  # the second time behind a call of the right number
        for count in (0, 2):
            message = f"{count} arguments, expected 1"
            with pytest.raises(InputMismatchError, match=message):
                loaded([torch.zeros(SHAPE)] * count)
        loaded([torch.zeros(SHAPE)])


def test_wrapped_tensor_is_refused(
    no_externals: RunExternal, chain_program: Program
) -> None:
    loaded = LoadedProgram(chain_program, no_externals)
    with pytest.raises(InputMismatchError):
        torch.func.vmap(lambda x: loaded([x])[0])(torch.zeros(3, *SHAPE))


class _Recorder(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


class _DispatchRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[Any] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


def test_the_callers_modes_are_out_of_the_way(matmul_program: Program) -> None:
    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        assert not torch.is_grad_enabled()
        assert torch.empty(1).device.type == "cpu"
        return (torch.mm(*tensors),)

    loaded = LoadedProgram(matmul_program, run)
    x = torch.nn.Parameter(torch.randn(4, 4))
    expected = (x @ x @ x).detach()
    recorder, dispatch_recorder = _Recorder(), _DispatchRecorder()
    with (
        torch.device("meta"),
        torch.autocast("cpu", dtype=torch.bfloat16),
        recorder,
        dispatch_recorder,
    ):
        recorder.calls.clear()
        (result,) = loaded([x])
        assert torch.is_autocast_enabled("cpu")
        assert torch.is_grad_enabled()
        assert (recorder.calls, dispatch_recorder.calls) == ([], [])
        assert torch.empty(1).device.type == "meta"
    assert dispatch_recorder.calls
    torch.testing.assert_close(result, expected)
    assert result.dtype is torch.float32
    assert not result.requires_grad


def test_a_program_of_kernels_is_not_seen_by_modes_or_subclasses(
    no_externals: RunExternal, chain_program: Program
) -> None:
    loaded = LoadedProgram(chain_program, no_externals)
    x = torch.randn(SHAPE)
    (expected,) = loaded([x])
    recorder, dispatch_recorder = _Recorder(), _DispatchRecorder()
    with torch.device("meta"), recorder, dispatch_recorder:
        recorder.calls.clear()
        (inside,) = loaded([x])
        assert (recorder.calls, dispatch_recorder.calls) == ([], [])
    _Watching.calls.clear()
    (watched,) = loaded([x.as_subclass(_Watching)])
    assert _Watching.calls == []
    (trained,) = loaded([x.clone().requires_grad_()])
    with torch.inference_mode():
        (inferred,) = loaded([x])
    assert inferred.is_inference()
    for result in (inside, watched, trained, inferred):
        assert type(result) is Tensor
        assert not result.requires_grad
        assert torch.equal(result, expected)


class _Watching(Tensor):
    calls: ClassVar[list[Any]] = []

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        cls.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs)


def test_a_parameter_that_changes_its_memory_is_followed_or_refused(
    no_externals: RunExternal, chain_program: Program
) -> None:
    loaded = LoadedProgram(chain_program, no_externals)
    x = torch.nn.Parameter(torch.zeros(SHAPE))
    loaded([x])
    x.data = torch.ones(SHAPE)
    (result,) = loaded([x])
    assert torch.equal(result, torch.full(SHAPE, 10.0))
    x.data = torch.ones(8, 4).t()
    with pytest.raises(InputMismatchError, match="strides"):
        loaded([x])


def test_arguments_of_a_program_that_torch_runs_a_part_of_are_known_again(
    matmul_program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[int] = []
    addresses = Admission.addresses

    def counted(self: Admission, arguments: Sequence[Tensor]) -> list[int]:
        checked.append(len(arguments))
        return addresses(self, arguments)

    monkeypatch.setattr(Admission, "addresses", counted)
    loaded = LoadedProgram(matmul_program, lambda _, tensors: (torch.mm(*tensors),))
    loaded([torch.zeros(4, 4)])
    x = torch.randn(4, 4)
    recorder, dispatch_recorder = _Recorder(), _DispatchRecorder()
    with torch.autocast("cpu", dtype=torch.bfloat16), recorder, dispatch_recorder:
        recorder.calls.clear()
        (result,) = loaded([x])
        assert (recorder.calls, dispatch_recorder.calls) == ([], [])
    assert checked == [1]
    torch.testing.assert_close(result, x @ x @ x)
    with pytest.raises(InputMismatchError, match="strides"):
        loaded([x.t()])
    assert checked == [1, 1]


def test_tensors_of_one_form_need_no_check(
    no_externals: RunExternal, chain_program: Program
) -> None:
    loaded = LoadedProgram(chain_program, no_externals)
    loaded([torch.zeros(SHAPE)])
    x = torch.ones(SHAPE)
    (result,) = loaded.call_alike([x])
    assert torch.equal(result, torch.full(SHAPE, 10.0))
    recorder = _Recorder()
    with torch.device("meta"), recorder:
        recorder.calls.clear()
        (inside,) = loaded.call_alike([x])
        assert recorder.calls == []
    assert torch.equal(inside, result)


def test_modes_come_back_after_an_exception(matmul_program: Program) -> None:
    def run(node: str, tensors: Sequence[Tensor]) -> tuple[Tensor]:
        raise ZeroDivisionError

    loaded = LoadedProgram(matmul_program, run)
    recorder = _Recorder()
    with torch.autocast("cpu", dtype=torch.bfloat16), recorder:
        with pytest.raises(ZeroDivisionError):
            loaded([torch.zeros(4, 4)])
        assert torch.is_autocast_enabled("cpu")
        assert torch.is_grad_enabled()
        torch.zeros(1)
    assert recorder.calls


def test_calls_in_and_out_of_inference_mode_mix(matmul_program: Program) -> None:
    loaded = LoadedProgram(matmul_program, lambda _, tensors: (torch.mm(*tensors),))
    x = torch.randn(4, 4)
    with torch.inference_mode():
        (inside,) = loaded([x])
    (outside,) = loaded([x])
    assert inside.is_inference()
    assert not outside.is_inference()
    assert torch.equal(inside, outside)
    outside.add_(1)
