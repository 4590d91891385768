"""Owns the operators of Python: their symbols, functions and special methods."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

# Symbol -> name, of which special methods and the functions of `operator` have theirs.
BINARY: Final = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "@": "matmul",
    "<<": "lshift",
    ">>": "rshift",
    "&": "and",
    "|": "or",
    "^": "xor",
}
COMPARISONS: Final = {
    "==": "eq",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
}
UNARY: Final = {"-": "neg", "+": "pos", "~": "invert"}
# What the right side of a comparison is asked when the left one does not know.
_REFLECTED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def functions(
    names: Mapping[str, str], prefix: str = ""
) -> dict[str, Callable[..., Any]]:
    """Return the functions of operators by symbol.

    Args:
        names: One of the tables above.
        prefix: "i" for the forms in place.
    """
    return {
        symbol: getattr(operator, f"__{prefix}{name}__")
        for symbol, name in names.items()
    }


def methods_of(comparison: str) -> tuple[str, str]:
    """Return the special methods that the left and the right side have for it."""
    return (
        f"__{COMPARISONS[comparison]}__",
        f"__{COMPARISONS[_REFLECTED[comparison]]}__",
    )
