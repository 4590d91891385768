"""Owns the first observed frame: it calls the program as any caller would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def call_entry(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call the program; this call is the first instruction that has a rule."""
    return function(*args, **kwargs)
