"""Programs for GPUs on a mock driver: what is loaded, launched, computed and said."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hosted_gpu import STREAM, HostedGpu, Launches, MockDriver, compile_interpreted
from torch import Tensor, fx

from magweld.artifact import Place, Program
from magweld.importer.importer import ImportedGraph, import_graph
from magweld.runtime.errors import InputMismatchError, ProgramError
from magweld.runtime.gpu.driver import CUDA, HIP, DeviceError, LibraryDriver
from magweld.runtime.program import LoadedProgram

CUDA_DEVICE = torch.device("cuda", 0)


def linear_softmax(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.softmax(F.linear(x, w, b).relu(), -1)


def chained(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """Two kernels and a value between them."""
    y = (x @ w).cumsum(0)
    return y.relu().sum(1), (y * 2).view(-1)


def convolved(x: Tensor, w: Tensor) -> Tensor:
    """Windows with zeros around the image, and what follows."""
    return F.conv2d(x + 1, w, padding=1).relu().sum((2, 3))


def widened(x: Tensor) -> Tensor:
    """An operator that has no code for GPUs, between two that have."""
    return (x + 1).double().exp().float().relu().sum(1)


def counted(x: Tensor) -> Tensor:
    """An external that makes its result on the device of the graph."""
    return x + torch.arange(x.shape[1], device=x.device).cumsum(0)


def looked_up(table: Tensor, x: Tensor) -> Tensor:
    """Rows by indices that a kernel makes and torch checks."""
    return F.softmax(F.embedding((x > 0).long(), table), -1)


def padded(x: Tensor) -> Tensor:
    """A border around what a kernel makes."""
    return F.pad(x.relu().sum(0), (2, 1, 0, 3), value=0.5) + 1


def enlarged(x: Tensor) -> Tensor:
    """Neighbours that are one pixel are stored together."""
    return F.interpolate(x, scale_factor=2)


def counted_truths(x: Tensor) -> Tensor:
    """Numbers become whole ones, and truth values numbers."""
    return (x * 10).int().clamp(-3, 5) + (x > 0).float()


def updated(x: Tensor) -> Tensor:
    return x.mul_(2) + 1


def branches(x: Tensor, y: Tensor, w: Tensor) -> list[Tensor]:
    """Members of a batch: one operand is shared, one begins within a tensor."""
    parts = x.split(8, -1)
    return [F.softmax(part * w, -1) for part in (parts[0], parts[1], y)]


def members(x: Tensor, w: Tensor) -> list[Tensor]:
    """Members of a batch alone."""
    parts = x.split(8, -1)
    return [F.softmax(part * w, -1) for part in (parts[0], parts[1])]


def odd_parts(x: Tensor) -> list[Tensor]:
    """Parts that begin where no wide access may: each is a kernel of its own."""
    parts = x.split(5, -1)
    return [F.softmax(part, -1) for part in (parts[0], parts[1])]


CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "linear-softmax": (linear_softmax, [(8, 12), (10, 12), (10,)]),
    "chained": (chained, [(6, 8), (8, 5)]),
    "convolved": (convolved, [(1, 2, 6, 6), (3, 2, 3, 3)]),
    "channels": (convolved, [(1, 96, 8, 8), (4, 96, 3, 3)]),
    "widened": (widened, [(4, 7)]),
    "counted": (counted, [(4, 7)]),
    "looked-up": (looked_up, [(4, 12), (3, 5)]),
    "padded": (padded, [(3, 4, 7)]),
    "enlarged": (enlarged, [(1, 2, 3, 4)]),
    "counted-truths": (counted_truths, [(5, 7)]),
    "updated": (updated, [(4, 7)]),
    "members": (members, [(3, 16), (8,)]),
    "branches": (branches, [(3, 16), (3, 8), (8,)]),
    "odd-parts": (odd_parts, [(3, 10)]),
}


def imported(function: Callable[..., Any], inputs: list[Tensor]) -> ImportedGraph:
    graph = fx.symbolic_trace(function)
    return import_graph(graph, inputs, look_ups=True, device=CUDA_DEVICE)


@cache  # each takes seconds, and no test changes one
def compiled(name: str) -> tuple[ImportedGraph, Program, Launches]:
    function, shapes = CASES[name]
    inputs = [torch.randn(shape) for shape in shapes]
    return compile_interpreted(imported(function, inputs), "nvvm:sm_80")


def loaded(
    name: str, mock: MockDriver, hosted: HostedGpu
) -> tuple[ImportedGraph, Program, LoadedProgram, list[Tensor]]:
    graph, program, launches = compiled(name)
    mock.kernels.update(launches)
    inputs = [torch.randn(shape) for shape in CASES[name][1]]

    def run_external(node: str, tensors: Any) -> Any:
        # The graph names a GPU, and there is none.
        external = graph.externals[node]
        if "device" in external.node.kwargs:
            external.node.update_kwarg("device", torch.device("cpu"))
        return external(tensors)

    return graph, program, LoadedProgram(program, run_external, hosted), inputs


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CASES)
def test_programs_compute_what_eager_does(
    name: str, mock: MockDriver, hosted: HostedGpu
) -> None:
    graph, program, call, inputs = loaded(name, mock, hosted)
    for _ in range(2):
        mine = [torch.randn_like(tensor) for tensor in inputs]
        theirs = [tensor.clone() for tensor in mine]
        found = graph.finish(mine, call(graph.prepare(mine)))
        expected = CASES[name][0](*theirs)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(mine, theirs)
    assert len(mock.launched) == 2 * len(program.launches)


def test_launches_are_those_of_the_program(mock: MockDriver, hosted: HostedGpu) -> None:
    _, program, call, inputs = loaded("linear-softmax", mock, hosted)
    call(inputs)
    for launch, seen in zip(program.launches, mock.launched, strict=True):
        assert seen.kernel == launch.kernel
        assert seen.grid == launch.grid
        assert seen.block == launch.block
        assert seen.shared_bytes == launch.shared_bytes
        assert seen.stream == STREAM


def test_members_of_a_batch_are_one_launch(mock: MockDriver, hosted: HostedGpu) -> None:
    """Parts of one tensor too, where they begin at a multiple of 16 bytes."""
    _, program, call, inputs = loaded("members", mock, hosted)
    call(inputs)
    assert [launch.members for launch in program.launches] == [2]
    assert [launch.kernels for launch in program.launches] == [1]
    assert Program.from_header(program.header(), (), ()).launches == program.launches


def test_different_kernels_are_one_launch(mock: MockDriver, hosted: HostedGpu) -> None:
    calls = {}
    for name in ("branches", "odd-parts"):
        _, program, call, inputs = loaded(name, mock, hosted)
        call(inputs)
        (launch,), (group,) = program.launches, program.report["groups"]
        calls[name] = launch.kernels, len(group["members"])
        assert launch.grid[1:] == (1, 1)
        assert launch.pointers
        assert (
            Program.from_header(program.header(), (), ()).launches == program.launches
        )
    # The whole of `y` has another type than parts of `x`, of which two are a batch.
    assert calls == {"branches": (2, 3), "odd-parts": (2, 2)}


def test_launches_are_named_in_profilers(mock: MockDriver, hosted: HostedGpu) -> None:
    graph, program, call, inputs = loaded("widened", mock, hosted)
    with torch.profiler.profile() as profile:
        found = graph.finish(inputs, call(graph.prepare(inputs)))
    torch.testing.assert_close(found, widened(*inputs), rtol=1e-4, atol=1e-5)
    names = [e.name for e in profile.events() if e.name.startswith("magweld::")]
    assert names == [
        "magweld::add+_to_copy",
        "magweld::exp (torch)",
        "magweld::_to_copy+relu+sum",
    ]
    assert len(mock.launched) == len(program.launches)


def test_hip_has_the_same_functions(mock: MockDriver) -> None:
    hosted = HostedGpu(LibraryDriver(HIP, mock.path))
    graph, _, call, inputs = loaded("linear-softmax", mock, hosted)
    found = graph.finish(inputs, call(inputs))
    torch.testing.assert_close(found, linear_softmax(*inputs))


def test_much_shared_memory_is_asked_for(mock: MockDriver, hosted: HostedGpu) -> None:
    _, program, _, inputs = loaded("linear-softmax", mock, hosted)
    wanted = tuple(replace(one, shared_bytes=100_000) for one in program.launches)
    LoadedProgram(replace(program, launches=wanted), no_external, hosted)(inputs)
    assert {seen.shared_bytes for seen in mock.launched} == {100_000}


def test_the_driver_compiles_where_it_takes_no_machine_code(
    mock: MockDriver, hosted: HostedGpu
) -> None:
    _, program, _, inputs = loaded("linear-softmax", mock, hosted)
    (text,) = (code for code in program.objects if not code.startswith(b"\x7fELF"))
    both = replace(
        program,
        objects=(b"\x7fELF machine code", text),
        launches=tuple(replace(one, images=(0, 1)) for one in program.launches),
    )
    mock.fail("load_binary", 209)
    LoadedProgram(both, no_external, hosted)(inputs)
    assert mock.launched
    alone = replace(
        both, launches=tuple(replace(one, images=(0,)) for one in both.launches)
    )
    with pytest.raises(DeviceError, match=r"'kernel_0_kernel'.*CUDA_ERROR_OTHER"):
        LoadedProgram(alone, no_external, hosted)


def test_modules_are_unloaded_with_the_program(
    mock: MockDriver, hosted: HostedGpu
) -> None:
    _, program, call, inputs = loaded("chained", mock, hosted)
    call(inputs)
    assert mock.library.mock_loaded() == len({x.images for x in program.launches})
    del call
    gc.collect()
    assert mock.library.mock_unloaded() == mock.library.mock_loaded()


def no_external(node: str, tensors: Any) -> Any:
    raise AssertionError(node)


@pytest.mark.parametrize(
    ("function", "identity", "text"),
    [
        ("load", "device-code", "line 7: syntax error"),
        ("function", "device-code", "CUDA_ERROR_OTHER"),
        ("launch", "device-launch", "CUDA_ERROR_OTHER: another error"),
        ("synchronize", "device-failed", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    ],
)
def test_errors_name_the_kernel_and_its_operators(
    function: str, identity: str, text: str, mock: MockDriver
) -> None:
    hosted = HostedGpu(LibraryDriver(CUDA, mock.path), synchronous=True)
    _, program, _, inputs = loaded("linear-softmax", mock, hosted)
    mock.fail(function, 700 if function == "synchronize" else 1)
    with pytest.raises(DeviceError, match=text) as raised:
        LoadedProgram(program, no_external, hosted)(inputs)
    assert raised.value.id == identity
    assert "kernel 'kernel_0_kernel' (" in str(raised.value)
    assert "relu" in str(raised.value)
    assert str(raised.value).count(identity) == 1


def test_a_failed_call_leaves_the_program_usable(
    mock: MockDriver, hosted: HostedGpu
) -> None:
    graph, _, call, inputs = loaded("linear-softmax", mock, hosted)
    mock.fail("launch", 1)
    with pytest.raises(DeviceError):
        call(inputs)
    mock.fail("", 0)
    found = graph.finish(inputs, call(inputs))
    torch.testing.assert_close(found, linear_softmax(*inputs))


def test_a_missing_driver_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="device-driver"):
        LibraryDriver(CUDA, str(tmp_path / "libnone.so"))
    with pytest.raises(DeviceError, match="device-driver"):
        LibraryDriver(CUDA, "libm.so.6")


def test_tensors_of_another_device_are_refused(
    mock: MockDriver, hosted: HostedGpu
) -> None:
    _, _, call, inputs = loaded("updated", mock, hosted)
    with pytest.raises(InputMismatchError, match="is on meta, expected cpu"):
        call([inputs[0].to("meta")])
    assert not mock.launched


@pytest.mark.parametrize(
    "broken",
    [
        {"pointers": (0, 99)},
        {"images": (7,)},
        {"images": ()},
        {"grid": (0, 1, 1)},
        {"block": (1, 1)},
        {"shared_bytes": -1},
    ],
)
def test_contradictions_are_found_at_loading(
    broken: dict[str, Any], mock: MockDriver, hosted: HostedGpu
) -> None:
    _, program, _, _ = loaded("updated", mock, hosted)
    launches = (replace(program.launches[0], **broken),)
    with pytest.raises(ProgramError, match="bad-launch"):
        LoadedProgram(replace(program, launches=launches), no_external, hosted)
    with pytest.raises(ProgramError, match="no-launch"):
        LoadedProgram(replace(program, launches=()), no_external, hosted)


def test_arenas_are_not_shared_between_streams(
    mock: MockDriver, hosted: HostedGpu
) -> None:
    _, program, call, inputs = loaded("chained", mock, hosted)
    places = [program.values[value].place for value in program.launches[0].pointers]
    position = places.index(Place.ARENA)
    seen = []
    first = program.launches[0].kernel
    compute = mock.kernels[first]

    def note(parameters: Any) -> None:
        seen.append(ctypes.c_uint64.from_address(parameters[position]).value)
        compute(parameters)

    mock.kernels[first] = note
    for hosted.stream in (1, 1, 2, 1, None, None):
        kept = call(inputs)
    assert seen[0] == seen[1] == seen[3] != seen[2]
    assert {launch.stream for launch in mock.launched} == {1, 2, STREAM}
    # What a graph has captured is used by nobody else, also in later calls.
    assert not {seen[0], seen[2]} & set(seen[4:])
    assert kept


def test_arguments_that_begin_anywhere_are_copied(
    mock: MockDriver, hosted: HostedGpu
) -> None:
    """Kernels access up to 16 bytes at once, which the interpreter wants aligned."""
    graph = imported(lambda x: x.relu() + 1, [torch.randn(4, 8)])
    _, program, launches = compile_interpreted(graph, "nvvm:sm_80")
    mock.kernels.update(launches)
    call = LoadedProgram(program, no_external, hosted)
    for start in (1, 4):
        x = torch.randn(40)[start : start + 32].view(4, 8)
        (result,) = call([x])
        torch.testing.assert_close(result, x.relu() + 1)


def test_a_gpu_is_made_the_current_one_only_where_it_is_not(
    mock: MockDriver, hosted: HostedGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, call, inputs = loaded("linear-softmax", mock, hosted)
    entered = []

    def activate() -> nullcontext[None]:
        entered.append(True)
        return nullcontext()

    monkeypatch.setattr(hosted, "activate", activate)
    call(inputs)  # the first call learns the tensors
    monkeypatch.setattr(hosted, "is_current", lambda: True)
    entered.clear()
    (found,) = call(inputs)
    assert not entered
    monkeypatch.setattr(hosted, "is_current", lambda: False)
    for again in (call(inputs), call.call_alike(inputs)):
        torch.testing.assert_close(again, [found])
    assert len(entered) == 2


def test_prepared_launches_read_where_values_are_now(
    mock: MockDriver, hosted: HostedGpu
) -> None:
    """Addresses are read at each launch: alone, in one table, and within tensors."""
    for name in ("linear-softmax", "members", "branches"):
        graph, _, call, _ = loaded(name, mock, hosted)
        kept = []
        for _ in range(3):
            mine = [torch.randn(shape) for shape in CASES[name][1]]
            kept.append(mine)  # so that the next ones are elsewhere
            found = graph.finish(mine, call(graph.prepare(mine)))
            torch.testing.assert_close(found, CASES[name][0](*mine))
