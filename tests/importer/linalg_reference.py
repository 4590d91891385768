"""Runs imported graphs through a plain lowering of linalg, as a reference."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch_mlir.execution_engine import ExecutionEngine

from magweld.bindings import ir, passmanager
from magweld.context import make_context
from magweld.importer.importer import ImportedGraph
from magweld.passes.graph.lower_torch_to_linalg import LowerTorchToLinalg
from magweld.passes.graph.simplify_generic import SimplifyGeneric
from magweld.passes.ir.utils import functions_of

TO_LLVM = (
    "builtin.module("
    "one-shot-bufferize{bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map},"
    "func.func(refback-munge-memref-copy,convert-linalg-to-loops),"
    "convert-scf-to-cf,expand-strided-metadata,lower-affine,"
    "func.func(llvm-request-c-wrappers),arith-expand{include-bf16=true},math-expand-ops,convert-math-to-llvm,"
    "convert-math-to-libm,"
    "convert-index-to-llvm,convert-arith-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)"
)
NUMPY_TYPES = {"i1": np.bool_, "i8": np.int8, "i32": np.int32, "i64": np.int64}
NUMPY_TYPES |= {"f16": np.float16, "f32": np.float32, "f64": np.float64}
NUMPY_TYPES |= {"bf16": np.int16, "i16": np.int16}


def descriptor(rank: int) -> type[ctypes.Structure]:
    """Return the C type of a memref descriptor."""
    fields: list[tuple[str, Any]] = [
        ("allocated", ctypes.c_void_p),
        ("aligned", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
    ]
    if rank:
        fields += [("shape", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]
    return type(f"Descriptor{rank}", (ctypes.Structure,), {"_fields_": fields})


def describe(array: np.ndarray[Any, Any]) -> ctypes.Structure:
    """Return the descriptor of a C-contiguous array."""
    pointer = array.ctypes.data
    made = descriptor(array.ndim)(pointer, pointer, 0)
    for axis, extent in enumerate(array.shape):
        made.shape[axis] = extent
        made.strides[axis] = math.prod(array.shape[axis + 1 :])
    return made


class Reference:
    """The compiled function of an imported graph, run without any optimisation."""

    def __init__(self, imported: ImportedGraph) -> None:
        self.imported = imported
        self.context = make_context()
        self.module = ir.Module.parse(imported.text, self.context)
        LowerTorchToLinalg().run(self.operation)
        SimplifyGeneric().run(self.operation)
        self.linalg = str(self.module)
        self.functions = {f.name.value: f.type for f in functions_of(self.operation)}
        self.externals = {
            f.name.value: ir.StringAttr(f.attributes["magweld.external"]).value
            for f in functions_of(self.operation)
            if f.is_external
        }
        self.kept: list[Any] = []
        self.raised: list[BaseException] = []
        passmanager.PassManager.parse(TO_LLVM, self.context).run(self.operation)
        self.engine = ExecutionEngine(self.module, opt_level=0)
        for name, node in self.externals.items():
            self._register(name, node)

    @property
    def operation(self) -> ir.Operation:
        return self.module.operation

    def __call__(self, arguments: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Run `@main` on contiguous tensors."""
        arrays = [to_numpy(tensor) for tensor in arguments]
        kind = self.functions["main"]
        results = result_struct(kind.results)()
        pointers = [ctypes.pointer(ctypes.pointer(results))]
        pointers += [ctypes.pointer(ctypes.pointer(describe(a))) for a in arrays]
        self.engine.invoke("main", *pointers)
        if self.raised:
            raise self.raised[0]
        if not kind.results:
            return []
        made = read_all(results, kind.results)
        return [torch.empty(t.shape, dtype=t.dtype).copy_(t) for t in made]

    def _register(self, name: str, node: str) -> None:
        kind = self.functions[name]
        structures = [descriptor(ir.ShapedType(t).rank) for t in kind.inputs]
        outputs = result_struct(kind.results)
        signature = ctypes.CFUNCTYPE(None, *map(ctypes.POINTER, [outputs, *structures]))

        def call(target: Any, *operands: Any) -> None:
            pairs = zip(operands, kind.inputs, strict=True)
            tensors = [read(operand.contents, type_) for operand, type_ in pairs]
            try:
                results = self.imported.run_external(node, tensors)
            except BaseException as error:
                self.raised.append(error)
                results = tuple(empty(type_) for type_ in kind.results)
            arrays = [to_numpy(result.contiguous()) for result in results]
            self.kept += [arrays, results]
            write_all(target.contents, arrays, kind.results)

        callback = signature(call)
        self.kept.append(callback)
        self.engine.register_runtime(name, callback)


def result_struct(types: Sequence[ir.Type]) -> type[ctypes.Structure]:
    """Return the C type that a function of these results fills."""
    parts = [descriptor(ir.ShapedType(type_).rank) for type_ in types]
    if len(parts) == 1:
        return parts[0]
    fields = [(f"part{index}", part) for index, part in enumerate(parts)]
    return type("Results", (ctypes.Structure,), {"_fields_": fields})


def read_all(results: Any, types: Sequence[ir.Type]) -> list[torch.Tensor]:
    """Return the tensors in a filled result structure."""
    if len(types) == 1:
        return [read(results, types[0])]
    return [
        read(getattr(results, f"part{index}"), type_)
        for index, type_ in enumerate(types)
    ]


def write_all(target: Any, arrays: Sequence[Any], types: Sequence[ir.Type]) -> None:
    """Fill a result structure with descriptors of arrays."""
    for index, array in enumerate(arrays):
        made = describe(array)
        part = target if len(types) == 1 else getattr(target, f"part{index}")
        ctypes.memmove(
            ctypes.addressof(part), ctypes.addressof(made), ctypes.sizeof(made)
        )


def read(memory: Any, type_: ir.Type) -> torch.Tensor:
    """Return the tensor that a descriptor tells of."""
    shape = tuple(ir.ShapedType(type_).shape)
    kind = str(ir.ShapedType(type_).element_type)
    dtype = np.dtype(NUMPY_TYPES[kind])
    size = math.prod(shape) * dtype.itemsize
    address = memory.aligned + memory.offset * dtype.itemsize if size else 0
    data = ctypes.string_at(address, size)
    tensor = torch.from_numpy(np.frombuffer(data, dtype).reshape(shape).copy())
    return tensor.view(torch.bfloat16) if kind == "bf16" else tensor


def empty(type_: ir.Type) -> torch.Tensor:
    """Return some tensor of a type."""
    kind = str(ir.ShapedType(type_).element_type)
    shape = tuple(ir.ShapedType(type_).shape)
    return torch.from_numpy(np.zeros(shape, NUMPY_TYPES[kind]))


def to_numpy(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return the array of a contiguous tensor."""
    tensor = tensor.detach()
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.view(torch.int16)
    return tensor.contiguous().numpy()
