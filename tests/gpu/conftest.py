"""Owns the way from a kernel template to a launch in the interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import numpy as np
import pytest

from magweld import targets
from magweld.bindings import ir
from magweld.context import make_context
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline, Step
from magweld.passes.pipelines.gpu import BlockShape, block_steps

# Test modules of a folder cannot import each other otherwise under importlib mode.
sys.path.insert(0, str(Path(__file__).parent))

from gpu_interpreter import launch

if TYPE_CHECKING:
    from hosted_gpu import HostedGpu, MockDriver

# Tiled kernels are the same for every target.
KERNELS = Path(__file__).parents[1] / "cpu" / "kernels"
SMALL_BLOCK = BlockShape(threads=32, subgroup=8, shared_bytes=49152)

Build = Callable[..., ir.Module]
Run = Callable[..., np.ndarray]


@pytest.fixture
def context() -> Iterator[None]:
    """An MLIR context and an unknown location, entered."""
    with make_context(), ir.Location.unknown():
        yield


@pytest.fixture(scope="module")
def one_unit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The target of a GPU of one unit: others share little work in small tiles."""
    shipped = files(targets).joinpath("devices.toml").read_text(encoding="utf-8")
    entry = shipped[shipped.index("[a100]") : shipped.index("[a100.host]")]
    path = tmp_path_factory.mktemp("devices") / "one.toml"
    rates = shipped[shipped.index("[[a100.instructions]]") :]
    rest = rates.partition("\n[h100]")[0]
    path.write_text(entry.replace("units = 108", "units = 1") + rest)
    return f"nvvm:sm_80@{path}#a100"


@pytest.fixture
def build(context: None) -> Build:
    """Lower a kernel template with its sizes, by default to the gpu dialect."""

    def build_template(
        name: str,
        sizes: dict[str, int],
        shape: BlockShape = SMALL_BLOCK,
        steps: Sequence[Step] | None = None,
    ) -> ir.Module:
        text = Template((KERNELS / f"{name}.mlir").read_text(encoding="utf-8"))
        module = ir.Module.parse(text.substitute(sizes))
        chosen = block_steps(shape) if steps is None else tuple(steps)
        run_pipeline(Pipeline(chosen), module)
        return module

    return build_template


@pytest.fixture
def run() -> Run:
    """Launch a lowered kernel on inputs and return its one output."""

    def run_kernel(
        module: ir.Module, inputs: Sequence[np.ndarray], shape: tuple[int, ...]
    ) -> np.ndarray:
        out = np.full(shape, np.nan, np.float32)
        launch(module, [*(np.ascontiguousarray(a) for a in inputs), out])
        return out

    return run_kernel


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The mock driver as a shared library."""
    pytest.importorskip("ziglang")
    made = tmp_path_factory.mktemp("driver") / "libmock.so"
    source = Path(__file__).with_name("mock_driver.c")
    compiler = [sys.executable, "-m", "ziglang", "cc"]
    options = ["-shared", "-fPIC", "-O1", "-o", str(made), str(source)]
    subprocess.run([*compiler, *options], check=True, timeout=300)
    return made


@pytest.fixture
def mock(library: Path) -> MockDriver:
    """A driver that launches nothing, and what was launched through it."""
    from hosted_gpu import MockDriver

    return MockDriver(str(library))


@pytest.fixture
def hosted(mock: MockDriver) -> HostedGpu:
    """A GPU whose memory is that of the host."""
    from hosted_gpu import HostedGpu

    from magweld.runtime.gpu.driver import CUDA, LibraryDriver

    return HostedGpu(LibraryDriver(CUDA, mock.path))
