"""Owns modules in the torch dialect of MLIR as programs that can be compiled."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, fx
from torch._ops import OpOverload
from torch_mlir.extras.fx_importer import (
    TORCH_DTYPE_TO_INT,
    TORCH_LAYOUT_TO_INT,
    TORCH_MEMORY_FORMAT_TO_INT,
)

from magweld.aot.compile import CapturedCall
from magweld.aot.errors import (
    EXPORT_INPUTS,
    EXPORT_SIZES,
    MODULE_DAMAGED,
    MODULE_FUNCTION,
    MODULE_OPERATION,
)
from magweld.aot.nested import Group
from magweld.aot.signature import Signature
from magweld.aot.template import TensorPart
from magweld.bindings import ir
from magweld.context import make_context
from magweld.runtime.dtypes import TORCH_DTYPES

_TYPE: Final = re.compile(
    r"!torch\.vtensor<\[(?P<sizes>[\d,?]*)\],(?P<element>[\w<>]+)>", re.ASCII
)
_BLOB: Final = re.compile(r': "0x(?P<bytes>[0-9A-Fa-f]*)"\s*\}\s*\}\s*#-\}\s*$')
# Of what a resource holds, the alignment comes first.
_ALIGNMENT_BYTES: Final = 4
_ENTRY: Final = "main"
_IDENTITIES: Final = ("torch.tensor_static_info_cast", "torch.derefine")
_LISTS: Final = ("torch.prim.ListConstruct", "torch.prim.TupleConstruct")
_LITERAL: Final = "torch.vtensor.literal"
_FOREIGN: Final = "torch.operator"
_CONSTANT: Final = "torch.constant."
# Views of torch's primitives, which cannot be traced, as operators that can.
_VIEWS: Final[Mapping[str, OpOverload]] = {
    "torch.prims.collapse": torch.ops.aten.flatten.using_ints,
    "torch.prims.squeeze": torch.ops.aten.squeeze.dims,
    "torch.prims.view_of": torch.ops.aten.alias.default,
}
# What an operator takes as a number in the dialect, by its type in the schema.
_ENUMERATIONS: Final[Mapping[str, Mapping[int, object]]] = {
    "ScalarType": {number: kind for kind, number in TORCH_DTYPE_TO_INT.items()},
    "Layout": {number: kind for kind, number in TORCH_LAYOUT_TO_INT.items()},
    "MemoryFormat": {
        number: kind for kind, number in TORCH_MEMORY_FORMAT_TO_INT.items()
    },
}


@dataclass(frozen=True)
class TensorSizes:
    """What a function of a module takes: sizes, None where they are open, and dtype."""

    sizes: tuple[int | None, ...]
    dtype: torch.dtype

    def admits(self, tensor: Tensor) -> bool:
        """Tell whether a tensor has these sizes and this dtype."""
        pairs = zip(self.sizes, tensor.shape, strict=False)
        return (
            tensor.dtype is self.dtype
            and tensor.dim() == len(self.sizes)
            and all(size in (None, found) for size, found in pairs)
        )


@dataclass(frozen=True)
class TorchModule:
    """A function of a module in the torch dialect.

    Attributes:
        graph: Its operators, on its arguments and then its literals.
        arguments: What it takes.
        literals: Its tensors.
        results: How many tensors it returns: one as it is, several as a tuple.
    """

    graph: fx.GraphModule
    arguments: tuple[TensorSizes, ...]
    literals: tuple[Tensor, ...]
    results: int

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Return tensors of the sizes that the module names.

        Raises:
            UnsupportedError: `export-sizes`.
        """
        for number, argument in enumerate(self.arguments):
            if None in argument.sizes:
                raise EXPORT_SIZES.at(f"argument {number}")
        return tuple(
            torch.zeros([size or 0 for size in one.sizes], dtype=one.dtype)
            for one in self.arguments
        )

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> CapturedCall:
        """Return a call of the function, which does not run.

        Raises:
            UnsupportedError: `export-inputs`: it does not take the arguments.
        """
        if kwargs or len(args) != len(self.arguments):
            expected = f"{len(self.arguments)} positional arguments"
            raise EXPORT_INPUTS.at(f"{len(args)} and {sorted(kwargs)}, not {expected}")
        for number, (value, argument) in enumerate(
            zip(args, self.arguments, strict=True)
        ):
            if not isinstance(value, Tensor) or not argument.admits(value):
                raise EXPORT_INPUTS.at(f"argument {number}, which is {argument}")
        outputs = tuple(TensorPart("outputs", n) for n in range(self.results))
        feeds = [
            *((False, number) for number in range(len(args))),
            *((True, number) for number in range(len(self.literals))),
        ]
        return CapturedCall(
            graph=self.graph,
            example_inputs=[*args, *self.literals],
            feeds=tuple(feeds),
            inputs=list(args),
            state={f"literal {n}": tensor for n, tensor in enumerate(self.literals)},
            template=outputs[0]
            if len(outputs) == 1
            else Group("tuple", tuple(enumerate(outputs))),
            signature=Signature.of(args, kwargs),
            by_value=True,
        )


def load_torch_module(path: Path) -> TorchModule:
    """Read a module in the torch dialect, as text or bytecode.

    It has a function `@main`, or one function alone, of value tensors: what torch-mlir
    makes with `output_type="torch"`. Weights are literals, dense or dense resources.

    Raises:
        UnsupportedError: The file is no such module.
        OSError: It cannot be read.
    """
    return read_torch_module(path.read_bytes(), path)


def read_torch_module(content: bytes, path: Path) -> TorchModule:
    """Read a module in the torch dialect.

    Args:
        content: Text or bytecode.
        path: The file that it is from, for errors.

    Raises:
        UnsupportedError: It is no such module.
    """
    with make_context():
        try:
            module = ir.Module.parse(content)
        except (ir.MLIRError, RuntimeError) as error:
            # The bindings raise the second if a message is no text.
            reason = " ".join(str(error).split())
            raise MODULE_DAMAGED.at(f"'{path}': {reason}") from error
        return _Reader(path).module(_function(module, path))


def _function(module: ir.Module, path: Path) -> ir.Operation:
    operations = [one.operation for one in module.body.operations]
    functions = [one for one in operations if one.name == "func.func"]
    named = [
        one
        for one in functions
        if len(functions) == 1
        or ir.StringAttr(one.attributes["sym_name"]).value == _ENTRY
    ]
    if not named or len(named[0].regions[0].blocks) != 1:
        raise MODULE_FUNCTION.at(f"'{path}'")
    return named[0]


class _Reader:
    """Reads one function, operation by operation."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._graph = fx.Graph()
        self._values: dict[ir.Value, Any] = {}
        self._literals: list[Tensor] = []

    def module(self, function: ir.Operation) -> TorchModule:
        """Return what a function does.

        Raises:
            UnsupportedError: An operation is none that torch has.
        """
        (block,) = function.regions[0].blocks
        operations = [one.operation for one in block.operations]
        *body, end = operations
        arguments = []
        for number, argument in enumerate(block.arguments):
            arguments.append(self._sizes(argument.type, end))
            self._values[argument] = self._graph.placeholder(f"argument_{number}")
        literals = [one for one in body if one.name == _LITERAL]
        for number, one in enumerate(literals):
            self._literals.append(self._tensor(one))
            self._values[one.results[0]] = self._graph.placeholder(f"literal_{number}")
        for one in body:
            if one.name != _LITERAL:
                self._read(one)
        results = [self._values[operand] for operand in end.operands]
        if not results or not all(isinstance(one, fx.Node) for one in results):
            raise self._refusal(end, "its results are no tensors")
        for operand in end.operands:
            self._sizes(operand.type, end)
        self._graph.output(tuple(results))
        return TorchModule(
            fx.GraphModule(torch.nn.Module(), self._graph),
            tuple(arguments),
            tuple(self._literals),
            len(results),
        )

    def _read(self, one: ir.Operation) -> None:
        operands = [self._values[operand] for operand in one.operands]
        if one.name.startswith(_CONSTANT):
            self._values[one.results[0]] = self._constant(one)
        elif one.name in _LISTS:
            kind = list if one.name == _LISTS[0] else tuple
            self._values[one.results[0]] = kind(operands)
        elif one.name in _IDENTITIES:
            self._values[one.results[0]] = operands[0]
        else:
            self._call(one, operands)

    def _call(self, one: ir.Operation, operands: Sequence[Any]) -> None:
        overload = self._overload(one)
        schema = overload._schema
        if len(operands) != len(schema.arguments) or schema.is_mutable:
            raise self._refusal(one, "its operands are not those of torch")
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for argument, operand in zip(schema.arguments, operands, strict=True):
            value = self._converted(one, str(argument.real_type), operand)
            if argument.kwarg_only:
                kwargs[argument.name] = value
            else:
                args.append(value)
        node = self._graph.call_function(overload, tuple(args), kwargs)
        node.meta["stack_trace"] = self._stack_trace(one)
        results = list(one.results)
        if len(results) == 1:
            self._values[results[0]] = node
            return
        for number, result in enumerate(results):
            parts = (operator.getitem, (node, number))
            self._values[result] = self._graph.call_function(*parts)

    def _overload(self, one: ir.Operation) -> OpOverload:
        if one.name in _VIEWS:
            return _VIEWS[one.name]
        dialect, *names = one.name.split(".")
        if dialect == "torch" and len(names) in (2, 3):
            namespace, name, overload = (*names, "default")[:3]
            packet = getattr(getattr(torch.ops, namespace), name, None)
            found = getattr(packet, overload, None)
            if isinstance(found, OpOverload):
                return found
        raise self._refusal(one, "it is no operator of torch")

    def _converted(self, one: ir.Operation, kind: str, operand: Any) -> Any:
        kind = kind.removeprefix("Optional[").removesuffix("]")
        known = _ENUMERATIONS.get(kind)
        if known is None or operand is None:
            return operand
        if not isinstance(operand, int) or operand not in known:
            raise self._refusal(one, f"there is no {kind} {operand}")
        return known[operand]

    def _constant(self, one: ir.Operation) -> Any:
        kind = one.name.removeprefix(_CONSTANT)
        if kind == "none":
            return None
        read = _CONSTANTS.get(kind)
        if read is None:
            raise self._refusal(one, "it is no constant that is known")
        return read(one.attributes["value"])

    def _tensor(self, one: ir.Operation) -> Tensor:
        kind = self._sizes(one.results[0].type, one)
        value = one.attributes["value"]
        shape = [size or 0 for size in kind.sizes]
        if isinstance(value, ir.DenseElementsAttr):
            try:
                elements = np.array(value)
            except TypeError as error:
                raise self._refusal(one, "write its data as a resource") from error
            return torch.from_numpy(elements).to(kind.dtype).reshape(shape)
        content = _resource(value)
        if content is None or len(content) != prod(shape) * kind.dtype.itemsize:
            raise self._refusal(one, "its data is not that of its type")
        if not content:
            return torch.empty(shape, dtype=kind.dtype)
        return torch.frombuffer(content, dtype=kind.dtype).reshape(shape)

    def _sizes(self, kind: ir.Type, one: ir.Operation) -> TensorSizes:
        match = _TYPE.fullmatch(str(kind))
        dtype = match and TORCH_DTYPES.get(match["element"].removeprefix("s"))
        if match is None or dtype is None:
            raise self._refusal(one, f"{kind} is no value tensor with known sizes")
        sizes = [size for size in match["sizes"].split(",") if size]
        known = (None if size == "?" else int(size) for size in sizes)
        return TensorSizes(tuple(known), dtype)

    def _refusal(self, one: ir.Operation, reason: str) -> Exception:
        name = one.name
        if name == _FOREIGN:
            name = ir.StringAttr(one.attributes["name"]).value
        return MODULE_OPERATION.at(f"'{name}' ({self._place(one)}): {reason}")

    def _place(self, one: ir.Operation) -> str:
        location = one.location
        if isinstance(location, ir.FileLineColLoc):
            file = location.filename
            return f"{self._path if file == '-' else file}:{location.start_line}"
        if isinstance(location, ir.NameLoc) and location.name_str:
            return f"{location.name_str} of {self._path}"
        return str(self._path)

    def _stack_trace(self, one: ir.Operation) -> str:
        file, _, line = self._place(one).rpartition(":")
        return f'File "{file}", line {line}' if line.isdigit() else ""


def _resource(value: ir.Attribute) -> bytearray | None:
    """Return the bytes of a dense resource, which the bindings give as text alone."""
    with ir.Location.unknown():
        holder = ir.Module.create()
        holder.operation.attributes["value"] = value
    match = _BLOB.search(str(holder))
    if match is None:
        return None
    return bytearray(bytes.fromhex(match["bytes"])[_ALIGNMENT_BYTES:])


_CONSTANTS: Final[Mapping[str, Callable[[ir.Attribute], Any]]] = {
    "bool": lambda value: bool(value.value),
    "device": lambda value: torch.device(value.value),
    "float": lambda value: float(value.value),
    "int": lambda value: int(value.value),
    "number": lambda value: value.value,
    "str": lambda value: str(value.value),
}
