"""magweld compiles eager PyTorch programs through MLIR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from magweld.aot.entry import compile as compile
    from magweld.deploy.compile import compile_portable as compile_portable
    from magweld.loading import load as load
    from magweld.tuning.options import TuneOptions as TuneOptions

__version__ = "0.1.0"

__all__ = ["TuneOptions", "__version__", "compile", "compile_portable", "load"]

_HOMES = {
    "TuneOptions": "magweld.tuning.options",
    "compile": "magweld.aot.entry",
    "compile_portable": "magweld.deploy.compile",
    "load": "magweld.loading",
}


def __getattr__(name: str) -> Any:
    # Tools that need no torch import this package as well.
    import importlib

    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
