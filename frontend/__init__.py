"""The front end: monitored execution of eager PyTorch programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from magweld.frontend.annotations.user import (
        AliasOf,
        AnnotationError,
        AttributeOf,
        ElementOf,
        Input,
        Output,
        annotate,
        annotated,
    )
    from magweld.frontend.records.record import Record
    from magweld.frontend.traced import Traced, trace

__all__ = [
    "AliasOf",
    "AnnotationError",
    "AttributeOf",
    "ElementOf",
    "Input",
    "Output",
    "Record",
    "Traced",
    "annotate",
    "annotated",
    "trace",
]

# No module is called `trace`: its import would take the place of the function.
_PARTS = {
    "annotations.user": (
        *("AliasOf", "AnnotationError", "AttributeOf", "ElementOf"),
        *("Input", "Output", "annotate", "annotated"),
    ),
    "records.record": ("Record",),
    "traced": ("Traced", "trace"),
}
_HOMES = {
    name: f"{__name__}.{part}" for part, names in _PARTS.items() for name in names
}


def __getattr__(name: str) -> Any:
    # The monitor works without torch; only these need it.
    import importlib

    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
