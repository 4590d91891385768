"""Owns the imports of MLIR's Python bindings; no other module imports torch_mlir.

The bindings come with the torch-mlir wheel, which carries the newest upstream MLIR
with all its dialects and passes. `import torch_mlir` does not import torch.
"""

from torch_mlir import ir, passmanager, rewrite
from torch_mlir.dialects import (
    affine,
    amdgpu,
    arith,
    bufferization,
    builtin,
    cf,
    ext,
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
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.dialects.transform import bufferization as bufferization_transform
from torch_mlir.dialects.transform import gpu as gpu_transform
from torch_mlir.dialects.transform import interpreter as transform_interpreter
from torch_mlir.dialects.transform import loop as loop_transform
from torch_mlir.dialects.transform import memref as memref_transform
from torch_mlir.dialects.transform import structured as structured_transform
from torch_mlir.dialects.transform import vector as vector_transform

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
    "registry",
    "rewrite",
    "rocdl",
    "scf",
    "structured_transform",
    "tensor",
    "torch_dialect",
    "transform",
    "transform_interpreter",
    "ub",
    "vector",
    "vector_transform",
]
