"""Owns the making of MLIR contexts that know magweld's dialects."""

from collections.abc import Sequence
from typing import Final

from magweld.bindings import ir, register_torch_dialect

# What passes written in Python make operations of. Other dialects are loaded where a
# text or an upstream pass has something of theirs. Loading all that there are takes
# most of the time of a small compilation's context, and each canonicalization collects
# the patterns of all that are loaded.
_WRITTEN: Final = (
    *("affine", "amdgpu", "arith", "bufferization", "cf", "func", "gpu", "linalg"),
    *("llvm", "math", "memref", "nvgpu", "nvvm", "rocdl", "scf", "tensor"),
    *("transform", "ub", "vector"),
)
# What a module in the torch dialect has beside it.
_BESIDE_TORCH: Final = ("func",)


def make_context() -> ir.Context:
    """Return a new context: what passes write is loaded, and our dialects are.

    Multithreading is off: passes and verifiers written in Python must run in the
    thread that holds the interpreter lock.
    """
    from magweld.dialects import load_dialects

    context = _torch_context(_WRITTEN)
    load_dialects(context)
    return context


def make_torch_context() -> ir.Context:
    """Return a new context for modules in the torch dialect: ours are not imported."""
    return _torch_context(_BESIDE_TORCH)


def _torch_context(dialects: Sequence[str]) -> ir.Context:
    context = ir.Context(load_on_create_dialects=dialects)
    context.enable_multithreading(False)
    register_torch_dialect(context)
    return context
