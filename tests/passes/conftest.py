"""Owns the evaluation of modules on tensors by a plain lowering, as a reference."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_mlir.execution_engine import ExecutionEngine

from magweld.bindings import ir, passmanager
from magweld.context import make_context
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline, Step
from magweld.passes.ir.utils import find_function

# Test modules of a folder cannot import each other otherwise under importlib mode.
sys.path.insert(0, str(Path(__file__).parent))

Array = np.ndarray[Any, Any]
Evaluate = Callable[[ir.Module, Sequence[Array]], list[Array]]

TO_LLVM = (
    "builtin.module("
    "one-shot-bufferize{allow-return-allocs-from-loops bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map},"
    "buffer-results-to-out-params{modify-public-functions},"
    "func.func(refback-munge-memref-copy,convert-linalg-to-loops),"
    "scf-forall-to-for,convert-scf-to-cf,expand-strided-metadata,lower-affine,"
    "func.func(llvm-request-c-wrappers),convert-math-to-llvm,convert-math-to-libm,"
    "convert-index-to-llvm,convert-arith-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)"
)
NUMPY_TYPES = {"i1": np.bool_, "i32": np.int32, "i64": np.int64, "f32": np.float32}


def _descriptor(array: Array) -> ctypes.Structure:
    """Return the memref descriptor of a C-contiguous array."""
    rank = array.ndim
    fields: list[tuple[str, Any]] = [
        ("allocated", ctypes.c_void_p),
        ("aligned", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
    ]
    if rank:
        fields += [("shape", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]
    kind = type(f"Descriptor{rank}", (ctypes.Structure,), {"_fields_": fields})
    made = kind(array.ctypes.data, array.ctypes.data, 0)
    for axis, extent in enumerate(array.shape):
        made.shape[axis] = extent
        made.strides[axis] = math.prod(array.shape[axis + 1 :])
    return made


def dtype_of(type_: ir.Type) -> Any:
    return np.dtype(NUMPY_TYPES[str(ir.ShapedType(type_).element_type)])


def evaluate(module: ir.Module, inputs: Sequence[Array]) -> list[Array]:
    """Run `@main` of a copy of a module; results start as a pattern, not as zeros."""
    copy = ir.Module.parse(str(module), module.context)
    types = find_function(copy.operation, "main").type.results
    results = [np.empty(ir.ShapedType(t).shape, dtype_of(t)) for t in types]
    for result in results:
        ctypes.memset(result.ctypes.data, 1, result.nbytes)
    passmanager.PassManager.parse(TO_LLVM, copy.context).run(copy.operation)
    engine = ExecutionEngine(copy, opt_level=0)
    arrays = [np.ascontiguousarray(array) for array in inputs]
    described = [_descriptor(array) for array in (*arrays, *results)]
    pointers = [ctypes.pointer(ctypes.pointer(one)) for one in described]
    engine.invoke("main", *pointers)
    return results


@pytest.fixture(name="evaluate")
def evaluate_fixture() -> Evaluate:
    return evaluate


@pytest.fixture
def inputs_of_main() -> Callable[[ir.Module], list[Array]]:
    """Make an input for every argument of `@main`, the same ones every time."""

    def make(module: ir.Module) -> list[Array]:
        random = np.random.default_rng(0)
        types = find_function(module.operation, "main").type.inputs
        return [_random(random, type_) for type_ in types]

    return make


def _random(random: np.random.Generator, type_: ir.Type) -> Array:
    shape, dtype = tuple(ir.ShapedType(type_).shape), dtype_of(type_)
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2 if dtype.kind == "b" else 5, shape).astype(dtype)


@pytest.fixture
def lower() -> Callable[[str, Sequence[Step]], ir.Module]:
    """Parse a module and run steps on it, in a context of its own."""

    def run(text: str, steps: Sequence[Step]) -> ir.Module:
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(text)
            run_pipeline(Pipeline(tuple(steps)), module)
            return module

    return run
