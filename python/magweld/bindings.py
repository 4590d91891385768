"""Owns the imports of MLIR's Python bindings; no other module imports torch_mlir.

The bindings come with the torch-mlir wheel, which carries the newest upstream MLIR
with all its dialects and passes. `import torch_mlir` does not import torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

from torch_mlir import ir, passmanager, rewrite
from torch_mlir._mlir_libs._torchMlir import (
    register_dialect as register_torch_dialect,
)
from torch_mlir.dialects import ext

if TYPE_CHECKING:
    from torch_mlir.dialects import (
        affine,
        amdgpu,
        arith,
        bufferization,
        builtin,
        cf,
        func,
        gpu,
        irdl,
        linalg,
        llvm,
        math,
        memref,
        nvgpu,
        nvvm,
        openmp,
        rocdl,
        scf,
        tensor,
        transform,
        ub,
        vector,
    )
    from torch_mlir.dialects.transform import bufferization as bufferization_transform
    from torch_mlir.dialects.transform import gpu as gpu_transform
    from torch_mlir.dialects.transform import interpreter as transform_interpreter
    from torch_mlir.dialects.transform import loop as loop_transform
    from torch_mlir.dialects.transform import memref as memref_transform
    from torch_mlir.dialects.transform import structured as structured_transform
    from torch_mlir.dialects.transform import vector as vector_transform

# Classes of dialects are imported where they are asked for. They take most of the time
# in which a worker starts: a compilation for a CPU asks for some, a process that only
# writes modules in the torch dialect for hardly any.
_ON_DEMAND = {
    "affine": "affine",
    "amdgpu": "amdgpu",
    "arith": "arith",
    "bufferization": "bufferization",
    "bufferization_transform": "transform.bufferization",
    "builtin": "builtin",
    "cf": "cf",
    "func": "func",
    "gpu": "gpu",
    "gpu_transform": "transform.gpu",
    "irdl": "irdl",
    "linalg": "linalg",
    "llvm": "llvm",
    "loop_transform": "transform.loop",
    "math": "math",
    "memref": "memref",
    "memref_transform": "transform.memref",
    "nvgpu": "nvgpu",
    "nvvm": "nvvm",
    "openmp": "openmp",
    "rocdl": "rocdl",
    "scf": "scf",
    "structured_transform": "transform.structured",
    "tensor": "tensor",
    "transform": "transform",
    "transform_interpreter": "transform.interpreter",
    "ub": "ub",
    "vector": "vector",
    "vector_transform": "transform.vector",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"torch_mlir.dialects.{_ON_DEMAND[name]}")


# MLIR looks for the Python module of a dialect by name, at every use until it finds
# one: with ours on its path it asks once.
ext._cext.globals.append_dialect_search_prefix("magweld.dialects")

# What the bindings know of all contexts: where Python modules of dialects are.
registry = ext._cext.globals

__all__ = [
    "affine",
    "amdgpu",
    "arith",
    "bufferization",
    "bufferization_transform",
    "builtin",
    "cf",
    "ext",
    "func",
    "gpu",
    "gpu_transform",
    "ir",
    "irdl",
    "linalg",
    "llvm",
    "loop_transform",
    "math",
    "memref",
    "memref_transform",
    "nvgpu",
    "nvvm",
    "openmp",
    "passmanager",
    "register_torch_dialect",
    "registry",
    "rewrite",
    "rocdl",
    "scf",
    "structured_transform",
    "tensor",
    "transform",
    "transform_interpreter",
    "ub",
    "vector",
    "vector_transform",
]
