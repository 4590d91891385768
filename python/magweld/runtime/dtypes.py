"""Owns the relation between MLIR's spelling of element types and torch's dtypes."""

from __future__ import annotations

import torch

from magweld.runtime.errors import ProgramError

TORCH_DTYPES: dict[str, torch.dtype] = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "ui8": torch.uint8,
    "i1": torch.bool,  # one byte an element in memory, as bufferised MLIR has it
    "complex<f32>": torch.complex64,
    "complex<f64>": torch.complex128,
}


def torch_dtype(spelling: str) -> torch.dtype:
    """Return the torch dtype of an MLIR element type.

    Raises:
        ProgramError: There is none.
    """
    try:
        return TORCH_DTYPES[spelling]
    except KeyError:
        raise ProgramError(
            "unknown-dtype", f"element type {spelling!r} has no torch dtype"
        ) from None
