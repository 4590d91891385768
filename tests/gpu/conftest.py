"""Owns the way from a kernel template to a launch in the interpreter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from string import Template

import numpy as np
import pytest

from magweld.bindings import ir
from magweld.context import make_context
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline, Step
from magweld.passes.pipelines.gpu import BlockShape, block_steps

# Test modules of a folder cannot import each other otherwise under importlib mode.
sys.path.insert(0, str(Path(__file__).parent))

from gpu_interpreter import launch

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
