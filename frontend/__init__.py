"""The front end: monitored execution of eager PyTorch programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from magweld.frontend.record import Record
    from magweld.frontend.trace import Traced, trace

__all__ = ["Record", "Traced", "trace"]

_HOMES = {
    "Record": "magweld.frontend.record",
    "Traced": "magweld.frontend.trace",
    "trace": "magweld.frontend.trace",
}


def __getattr__(name: str) -> Any:
    # The monitor works without torch; only these need it.
    import importlib

    if name in _HOMES:
        # `trace` is a module of this package as well as the function in it.
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
