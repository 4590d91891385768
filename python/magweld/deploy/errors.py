"""Owns the refusals of portable compilation."""

from __future__ import annotations

from magweld.diagnostics import Refusal

EXTERNAL = Refusal(
    "portable-operator",
    "an operator has no generated code, and an artifact has no torch to run it",
    "keep these operators out of the compiled part, or use magweld.compile",
)
WRITES = Refusal(
    "portable-writes",
    "the program writes to its inputs or to the model, which runs share",
    "return the new values in place of storing them",
)
TYPE = Refusal(
    "portable-type",
    "elements are of a type that portable artifacts have not",
    "convert them before and after, or use magweld.compile",
)
SHAPE = Refusal(
    "portable-rank",
    "a tensor has too many dimensions",
    "flatten some of them before and after",
)
DIFFERENT_CALLS = Refusal(
    "portable-calls",
    "example inputs differ in more than their shapes",
    "pass inputs of the same types, and a model that returns the same structure",
)
EXPORT = Refusal(
    "portable-export",
    "the model cannot be exported for a range of sizes",
    "export it with torch.export, or pass inputs of each size",
)
RANGES = Refusal(
    "portable-ranges",
    "the ranges of sizes are none that an artifact can have",
    "give each size a largest value, as torch.export.Dim('batch', max=64); an artifact "
    "has at most 4096 sizes",
)
SIZES = Refusal(
    "portable-sizes",
    "the program is not one for all sizes",
    "pass inputs of each size",
)
