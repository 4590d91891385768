"""Owns the task of a worker that turns models of ONNX into modules of torch operators.

Passes that meet a model they were not written for may end their process.
"""

from __future__ import annotations

import io
from typing import Final

from magweld.bindings import passmanager
from magweld.context import make_torch_context

TASK: Final = f"{__name__}:convert"
# Operators stay whole, as the importer knows them better than what they are made of; of
# shapes that are tensors the elements become numbers.
_PIPELINE: Final = (
    "builtin.module(func.func(convert-torch-onnx-to-torch),inline,symbol-dce,"
    "func.func(canonicalize,torch-scalarize-shapes,canonicalize,cse))"
)


def convert(model: bytes) -> bytes:
    """Return the bytecode of a module in the torch dialect.

    Args:
        model: A model of ONNX as bytes, whose values have known types.

    Raises:
        Exception: The importer of torch-mlir does not take the model, or a pass has no
            conversion of an operator.
    """
    # Imported here: models of ONNX are an extra.
    import onnx
    from torch_mlir.extras.onnx_importer import ModelInfo, NodeImporter

    imported = ModelInfo(onnx.load_model_from_string(model))
    with make_torch_context() as context:
        module = imported.create_module(context)
        nodes = NodeImporter.define_function(imported.main_graph, module.operation)
        nodes.import_all()
        passmanager.PassManager.parse(_PIPELINE).run(module.operation)
        bytecode = io.BytesIO()
        module.operation.write_bytecode(bytecode)
    return bytecode.getvalue()
