"""The front end: monitored execution of eager PyTorch programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from magweld.frontend.annotations.scope import annotated
    from magweld.frontend.annotations.user import (
        AliasOf,
        AnnotationError,
        AttributeOf,
        ElementOf,
        Input,
        Output,
        annotate,
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
_HOMES = {
    "AliasOf": "magweld.frontend.annotations.user",
    "AnnotationError": "magweld.frontend.annotations.user",
    "AttributeOf": "magweld.frontend.annotations.user",
    "ElementOf": "magweld.frontend.annotations.user",
    "Input": "magweld.frontend.annotations.user",
    "Output": "magweld.frontend.annotations.user",
    "annotate": "magweld.frontend.annotations.user",
    "annotated": "magweld.frontend.annotations.scope",
    "Record": "magweld.frontend.records.record",
    "Traced": "magweld.frontend.traced",
    "trace": "magweld.frontend.traced",
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
