"""Owns the one-line `repr` of objects that hold code, graphs or tensors."""

from __future__ import annotations

import dataclasses
import reprlib
from typing import Any, Final

_FIELD: Final = reprlib.Repr()
_FIELD.maxlevel = 2
_FIELD.maxtuple = _FIELD.maxlist = _FIELD.maxdict = _FIELD.maxset = 3
_FIELD.maxstring = _FIELD.maxother = 40


def short_repr(self: Any) -> str:
    """Return class and fields, each cut; `__repr__` of a dataclass or named tuple."""
    names = getattr(self, "_fields", None)
    if names is None:
        names = [field.name for field in dataclasses.fields(self) if field.repr]
    shown = (f"{name}={_field(getattr(self, name))}" for name in names)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _field(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    # Modules of torch take many lines.
    return " ".join(_FIELD.repr(value).split())
