"""Owns the way from MLIR's LLVM dialect to LLVM IR text."""

from __future__ import annotations

from magweld.bindings import ir, llvm
from magweld.codegen.kernel_signature import KernelSignature
from magweld.codegen.llvm_literals import respell_literals

_TILES = "magweld.tiles"
_SCRATCH = "magweld.scratch_bytes"
_RUNTIME = "tile_graph.runtime"


def kernel_signatures(module: ir.Module) -> tuple[KernelSignature, ...]:
    """Return the kernels of a module in the LLVM dialect, in order."""
    found = []
    for op in module.body.operations:
        if isinstance(op, llvm.LLVMFuncOp) and _TILES in op.attributes:
            arguments = len(op.regions[0].blocks[0].arguments)
            tiles = op.attributes[_TILES].value
            allocates = _SCRATCH in op.attributes
            scratch = op.attributes[_SCRATCH].value if allocates else 0
            name = op.sym_name.value
            has_extent = _RUNTIME in op.attributes
            pointers = arguments - (3 if has_extent else 2)
            found.append(KernelSignature(name, pointers, tiles, scratch, has_extent))
    return tuple(found)


def translate_to_llvm_ir(module: ir.Module) -> str:
    """Return the LLVM IR text of a module in the LLVM dialect, for llvmlite."""
    return respell_literals(str(llvm.translate_module_to_llvmir(module.operation)))
