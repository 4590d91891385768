"""Runs imported graphs through a plain lowering of linalg, as a reference."""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch_mlir.execution_engine import ExecutionEngine

from magweld.bindings import func, ir, passmanager
from magweld.context import make_context
from magweld.frontend.importer import ImportedGraph, import_graph
from magweld.passes.graph.lower_torch_to_linalg import LowerTorchToLinalg
from magweld.passes.graph.simplify_generic import SimplifyGeneric
from magweld.passes.ir_utils import functions_of

TO_LLVM = (
    "builtin.module("
    "one-shot-bufferize{bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map},"
    "func.func(refback-munge-memref-copy,convert-linalg-to-loops),"
    "convert-scf-to-cf,expand-strided-metadata,lower-affine,"
    "func.func(llvm-request-c-wrappers),math-expand-ops,convert-math-to-llvm,"
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


def same_metadata(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Tell whether dtype, shape and strides are equal."""
    return (left.dtype, left.shape, left.stride()) == (
        right.dtype,
        right.shape,
        right.stride(),
    )


class Recorder(TorchFunctionMode):
    """Records calls of torch functions as a graph, as the monitor does for tensors."""

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.graph = torch.fx.Graph()
        self.root = torch.nn.Module()
        self.kept: list[Any] = list(inputs)
        self.nodes = {
            id(x): self.graph.placeholder(f"input_{number}")
            for number, x in enumerate(inputs)
        }

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        leaves = torch.utils._pytree.tree_leaves(result)
        if func is not torch.Tensor.__setitem__ and not any(map(is_tensor, leaves)):
            return result
        arguments = torch.utils._pytree.tree_map(self._argument, (args, kwargs))
        if getattr(func, "__name__", "") == "__get__":
            called = (getattr, (arguments[0][0], func.__self__.__name__), {})
        else:
            called = (func, *arguments)
        node = self.graph.call_function(*called)
        if is_tensor(result):
            self._bind(result, node)
        elif not isinstance(result, type(None)):
            for index, leaf in enumerate(leaves):
                if is_tensor(leaf):
                    part = self.graph.call_function(operator.getitem, (node, index))
                    self._bind(leaf, part)
        return result

    def _bind(self, tensor: torch.Tensor, node: torch.fx.Node) -> None:
        self.kept.append(tensor)
        self.nodes[id(tensor)] = node

    def _argument(self, value: Any) -> Any:
        if not is_tensor(value):
            return value
        if id(value) not in self.nodes:
            name = f"held_{len(self.nodes)}"
            self.root.register_buffer(name, value.detach())
            self._bind(value, self.graph.get_attr(name))
        return self.nodes[id(value)]


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def record(function: Callable[..., Any], *inputs: torch.Tensor) -> torch.fx.GraphModule:
    """Run a function and return the graph of the torch functions it called."""
    recorder = Recorder(inputs)
    with torch.no_grad(), recorder:
        result = function(*inputs)
    leaves, structure = torch.utils._pytree.tree_flatten(result)
    made = [recorder.nodes[id(x)] if is_tensor(x) else x for x in leaves]
    recorder.graph.output(torch.utils._pytree.tree_unflatten(made, structure))
    return torch.fx.GraphModule(recorder.root, recorder.graph)


@pytest.fixture(name="record")
def record_fixture() -> Callable[..., torch.fx.GraphModule]:
    """Return the function that records another's calls of torch as a graph."""
    return record


@pytest.fixture
def run() -> Callable[..., Any]:
    """Run a function on its inputs through its import."""

    def call(
        function: Callable[..., Any],
        *inputs: torch.Tensor,
        example: Sequence[torch.Tensor] | None = None,
    ) -> Any:
        example = inputs if example is None else example
        graph = record(function, *[tensor.detach().clone() for tensor in example])
        imported = import_graph(graph, example)
        arguments = imported.prepare(inputs)
        return imported.finish(inputs, Reference(imported)(arguments))

    return call


@pytest.fixture
def check() -> Callable[..., Reference]:
    """Compare a function with its import on the same inputs; returns the reference.

    Results, written inputs and the state of the random generator must be equal.
    """

    def compare_once(
        function: Callable[..., Any], *inputs: torch.Tensor, atol: float = 1e-6
    ) -> Reference:
        graph = record(function, *[tensor.clone() for tensor in inputs])
        mine = [tensor.clone() for tensor in inputs]
        theirs = [tensor.clone() for tensor in inputs]
        reference = Reference(import_graph(graph, mine))
        with torch.no_grad():
            torch.manual_seed(0)
            expected = function(*theirs)
            state = torch.get_rng_state()
            torch.manual_seed(0)
            imported = reference.imported
            actual = imported.finish(mine, reference(imported.prepare(mine)))
            assert torch.equal(torch.get_rng_state(), state)
        compare(actual, expected, atol)
        for left, right in zip(mine, theirs, strict=True):
            compare(left, right, atol)
        return reference

    return compare_once


def compare(actual: Any, expected: Any, atol: float) -> None:
    """Assert that values, dtypes, shapes and strides are equal, leaf by leaf."""
    left = torch.utils._pytree.tree_leaves(actual)
    right = torch.utils._pytree.tree_leaves(expected)
    for mine, theirs in zip(left, right, strict=True):
        if not isinstance(theirs, torch.Tensor):
            assert mine == theirs
            continue
        assert same_metadata(mine, theirs)
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=atol, equal_nan=True)
