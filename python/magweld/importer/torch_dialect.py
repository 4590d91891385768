"""Owns the text of a functional ATen graph in the torch dialect of MLIR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import fx
from torch_mlir.extras.fx_importer import (
    ContextCache,
    FxImporter,
    GraphNodeImporter,
)

from magweld.artifact import StandIns
from magweld.bindings import func, ir
from magweld.context import make_torch_context
from magweld.importer.dtypes import LITERAL_TYPES, carrier_of
from magweld.importer.externals import External, may_be_absorbed
from magweld.importer.nodes import argument
from magweld.importer.ragged_bags import BAG_MODES, RAGGED_BAGS
from magweld.paced import checkpoint

EXTERNAL_ATTRIBUTE = "magweld.external"
_BAGS_ATTRIBUTE = "magweld.bags"
_STAND_INS = "magweld.stand_ins"


def to_torch_dialect(
    graph: fx.Graph,
    externals: Mapping[str, External],
    stand_ins: StandIns | None = None,
) -> str:
    """Return a module with one function `@main` over value tensors.

    Placeholders are its arguments, each operation has its node's name for location,
    and externals are calls of private functions.

    Args:
        graph: A functional ATen graph with a tensor without data in each `meta["val"]`.
        externals: External operators by node name.
        stand_ins: Extents that stand for sizes of the call, an attribute of the module.
    """
    importer = _Importer(externals)
    importer.import_function(graph)
    module = importer.module
    if stand_ins:
        with module.context:
            numbers = ir.DenseI64ArrayAttr.get(list(stand_ins.numbers))
        module.operation.attributes[_STAND_INS] = numbers
    # Local scope keeps locations beside their operations; they name nodes only, so
    # equal graphs have equal text.
    return str(module.operation.get_asm(enable_debug_info=True, use_local_scope=True))


def vtensor_type(tensor: torch.Tensor) -> str:
    """Return the type of value tensors like this one."""
    return str(_Types(make_torch_context()).tensor_to_vtensor_type(tensor))


class _Types(ContextCache):  # type: ignore[misc]
    """Gives elements the types that compiled code has for them."""

    def dtype_to_type(self, dtype: torch.dtype) -> ir.Type:
        return super().dtype_to_type(carrier_of(dtype))


class _NodeNames(_Types):
    """Gives each operation the name of its node as location."""

    def get_node_location(self, node: fx.Node) -> ir.Location:
        return ir.Location.name(node.name, context=self._c)


class _NodeImporter(GraphNodeImporter):  # type: ignore[misc]
    """Imports external operators as calls and leaves the others to torch-mlir."""

    fx_importer: _Importer

    def import_literal(self, node: fx.Node) -> None:
        """Import a constant of the graph with its data."""
        assert node.graph.owning_module is not None, "a constant needs its module"
        tensor = getattr(node.graph.owning_module, str(node.target))
        element = ir.Type.parse(_SIGNLESS[tensor.dtype], context=self._c)
        values = np.array(tensor.tolist(), dtype=LITERAL_TYPES[tensor.dtype])
        with ir.Location.name(node.name, context=self._c), ir.InsertionPoint(self._b):
            op = ir.Operation.create(
                "torch.vtensor.literal",
                results=[self._cc.tensor_to_vtensor_type(tensor)],
                attributes={"value": _elements(values, element)},
            )
        self.bind_node_value(node, op.result)

    def _import_argument(
        self, loc: ir.Location, arg: Any, expected_jit_type: Any = None
    ) -> Any:
        if isinstance(arg, fx.Node) and arg.op == "get_attr":
            return self.resolve_node_value(arg)
        return super()._import_argument(loc, arg, expected_jit_type)

    def _import_torch_op_overload(
        self, loc: ir.Location, node: fx.Node, concrete_target: Any = None
    ) -> None:
        checkpoint()
        external = self.fx_importer.externals.get(node.name)
        if node in self.fx_importer.beside:
            return
        if external is None and node.target is RAGGED_BAGS:
            self._import_bags(loc, node)
            return
        if external is None:
            if self._is_read(node):
                super()._import_torch_op_overload(loc, node, concrete_target)
            return
        callee = self.fx_importer.declare(external)
        operands = [self.resolve_node_value(operand) for operand in external.operands]
        call = func.CallOp(callee, operands, loc=loc)
        self._bind_results(external, list(call.results))

    def _import_bags(self, loc: ir.Location, node: fx.Node) -> None:
        operands = [self.resolve_node_value(one) for one in node.all_input_nodes]
        callee = self.fx_importer.declare_bags(node)
        call = func.CallOp(callee, operands, loc=loc)
        self.bind_node_value(node, call.results[0])

    def _import_getitem(self, loc: ir.Location, node: fx.Node) -> None:
        if node not in self.fx_importer.beside:
            super()._import_getitem(loc, node)

    def _is_read(self, node: fx.Node) -> bool:
        """Tell whether the text needs a node: externals make some operands anew."""
        externals = self.fx_importer.externals
        return node in self.fx_importer.operands or any(
            user.name not in externals
            and user not in self.fx_importer.beside
            and self._is_in_text(user)
            for user in node.users
        )

    def _is_in_text(self, user: fx.Node) -> bool:
        return not may_be_absorbed(user) or not user.users or self._is_read(user)

    def _bind_results(self, external: External, results: list[ir.Value]) -> None:
        for node in external.shown:
            self.bind_node_value(node, results.pop(0))
        if external.positions is None:
            for result in results:
                self.bind_node_value(external.node, result)
            return
        self._multi_result_nodes.add(external.node)
        for position, result in zip(external.positions, results, strict=True):
            self.bind_node_value(external.node, result, position)


class _Importer(FxImporter):  # type: ignore[misc]
    """Imports one graph with its external operators."""

    def __init__(self, externals: Mapping[str, External]) -> None:
        super().__init__(
            context=make_torch_context(),
            config_check=False,
            graph_node_importer_cls=_NodeImporter,
        )
        self._cc = _NodeNames(self._c, py_attr_tracker=self._py_attr_tracker)
        self.externals = externals
        self.operands = {node for e in externals.values() for node in e.operands}
        self.beside = {node for e in externals.values() for node in e.beside}
        self._declared = 0

    def import_function(self, graph: fx.Graph) -> None:
        """Import the graph as `@main`."""
        kind, location = self._graph_to_function_meta(graph)
        with location:
            function = func.FuncOp("main", kind, ip=self._m_ip)
            self._declarations = ir.InsertionPoint(function)
            entry = ir.Block.create_at_start(function.body, kind.inputs)
        importer = _NodeImporter(self, self._c, self._cc, entry)
        for node in graph.nodes:
            if node.op == "get_attr":
                importer.import_literal(node)
        importer.import_nodes(graph.nodes)

    def declare(self, external: External) -> func.FuncOp:
        """Declare the function that stands for an external operator."""
        results = [self._cc.value_info_to_type(value) for value in external.results]
        function = self._declare("external", external.node, external.operands, results)
        with self._c:
            name = ir.StringAttr.get(external.node.name)
        function.operation.attributes[EXTERNAL_ATTRIBUTE] = name
        return function

    def declare_bags(self, node: fx.Node) -> func.FuncOp:
        """Declare the function that `expand-bags` makes a loop of."""
        result = self._cc.node_val_to_type(node)
        function = self._declare("bags", node, node.all_input_nodes, [result])
        mode, padding = argument(node, "mode"), argument(node, "padding")
        with self._c:
            number = ir.IntegerType.get_signless(64)
            described: dict[str, ir.Attribute] = {
                "mode": ir.StringAttr.get(BAG_MODES[mode]),
                "padding": ir.IntegerAttr.get(number, padding),
            }
            for name in ("sizes", "weights"):
                if argument(node, name) is not None:
                    described[name] = ir.UnitAttr.get()
            if argument(node, "away"):
                described["ties_away"] = ir.UnitAttr.get()
            function.operation.attributes[_BAGS_ATTRIBUTE] = ir.DictAttr.get(described)
        return function

    def _declare(
        self,
        prefix: str,
        node: fx.Node,
        operands: Sequence[fx.Node],
        results: Sequence[ir.Type],
    ) -> func.FuncOp:
        kinds = [self._cc.node_val_to_type(operand) for operand in operands]
        with ir.Location.name(node.name, context=self._c):
            function = func.FuncOp(
                f"{prefix}_{self._declared}",
                (kinds, list(results)),
                visibility="private",
                ip=self._declarations,
            )
        self._declared += 1
        return function


def _elements(values: np.ndarray[Any, Any], element: ir.Type) -> ir.Attribute:
    if values.dtype != np.bool_:
        return ir.DenseElementsAttr.get(values, type=element, shape=list(values.shape))
    # Bits are packed in the attribute.
    bits = [ir.IntegerAttr.get(element, bool(value)) for value in values.flat]
    kind = ir.RankedTensorType.get(list(values.shape), element)
    return ir.DenseElementsAttr.get(bits, kind)


_SIGNLESS = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int64: "si64",
    torch.int32: "si32",
    torch.bool: "i1",
}
