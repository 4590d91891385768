"""Owns the text of a functional ATen graph in the torch dialect of MLIR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import fx
from torch_mlir.extras.fx_importer import (
    ContextCache,
    FxImporter,
    FxImporterHooks,
    GraphNodeImporter,
    InputInfo,
)

from magweld.bindings import func, ir
from magweld.context import make_context
from magweld.frontend.importer.externals import External

EXTERNAL_ATTRIBUTE = "magweld.external"


def to_torch_dialect(graph: fx.Graph, externals: Mapping[str, External]) -> str:
    """Return a module with one function `@main` over value tensors.

    Placeholders are its arguments, each operation has its node's name for location,
    and externals are calls of private functions.

    Args:
        graph: A functional ATen graph with a tensor without data in each `meta["val"]`.
        externals: External operators by node name.
    """
    importer = _Importer(externals)
    importer.import_function(graph)
    module = importer.module
    # Local scope keeps locations beside their operations; they name nodes only, so
    # equal graphs have equal text.
    return str(module.operation.get_asm(enable_debug_info=True, use_local_scope=True))


class _NodeNames(ContextCache):  # type: ignore[misc]
    """Gives each operation the name of its node as location."""

    def get_node_location(self, node: fx.Node) -> ir.Location:
        return ir.Location.name(node.name, context=self._c)


class _Literals(FxImporterHooks):  # type: ignore[misc]
    """Writes constants into the text rather than into a blob beside it."""

    def resolve_literal(
        self, gni: GraphNodeImporter, literal: Any, info: InputInfo | None
    ) -> ir.Value | None:
        if not isinstance(literal, torch.Tensor):
            return None
        kind = gni._cc.tensor_to_vtensor_type(literal)
        element = gni._cc.dtype_to_type(literal.dtype)
        values = np.array(literal.tolist(), dtype=_NUMPY_TYPES[literal.dtype])
        attribute = ir.DenseElementsAttr.get(
            np.ascontiguousarray(values), type=element, shape=list(literal.shape)
        )
        op = ir.Operation.create(
            "torch.vtensor.literal", results=[kind], attributes={"value": attribute}
        )
        return op.result


class _NodeImporter(GraphNodeImporter):  # type: ignore[misc]
    """Imports external operators as calls and leaves the others to torch-mlir."""

    fx_importer: _Importer

    def _import_torch_op_overload(
        self, loc: ir.Location, node: fx.Node, concrete_target: Any = None
    ) -> None:
        external = self.fx_importer.externals.get(node.name)
        if external is None:
            if node.users:
                super()._import_torch_op_overload(loc, node, concrete_target)
            return
        callee = self.fx_importer.declare(external)
        operands = [self.resolve_node_value(operand) for operand in external.operands]
        call = func.CallOp(callee, operands, loc=loc)
        self._bind_results(node, list(call.results))

    def _bind_results(self, node: fx.Node, results: list[ir.Value]) -> None:
        value = node.meta["val"]
        if isinstance(value, torch.Tensor):
            self.bind_node_value(node, results[0])
            return
        self._multi_result_nodes.add(node)
        for index, part in enumerate(value):
            if isinstance(part, torch.Tensor):
                self.bind_node_value(node, results.pop(0), index)


class _Importer(FxImporter):  # type: ignore[misc]
    """Imports one graph with its external operators."""

    def __init__(self, externals: Mapping[str, External]) -> None:
        super().__init__(
            context=make_context(),
            config_check=False,
            hooks=_Literals(),
            graph_node_importer_cls=_NodeImporter,
        )
        self._cc = _NodeNames(self._c, py_attr_tracker=self._py_attr_tracker)
        self.externals = externals
        self._declared = 0

    def import_function(self, graph: fx.Graph) -> None:
        """Import the graph as `@main`."""
        kind, location = self._graph_to_function_meta(graph)
        with location:
            function = func.FuncOp("main", kind, ip=self._m_ip)
            self._declarations = ir.InsertionPoint(function)
            entry = ir.Block.create_at_start(function.body, kind.inputs)
        _NodeImporter(self, self._c, self._cc, entry).import_nodes(graph.nodes)

    def declare(self, external: External) -> func.FuncOp:
        """Declare the function that stands for an external operator."""
        operands = [self._cc.node_val_to_type(operand) for operand in external.operands]
        results = [self._cc.value_info_to_type(value) for value in external.results]
        with ir.Location.name(external.node.name, context=self._c):
            function = func.FuncOp(
                f"external_{self._declared}",
                (operands, results),
                visibility="private",
                ip=self._declarations,
            )
            name = ir.StringAttr.get(external.node.name)
        function.operation.attributes[EXTERNAL_ATTRIBUTE] = name
        self._declared += 1
        return function


_NUMPY_TYPES = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.int64: np.int64,
    torch.int32: np.int32,
    torch.bool: np.bool_,
}
