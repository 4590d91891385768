"""From a recorded graph to the torch dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from magweld.importer.importer import ImportedGraph, import_graph

__all__ = ["ImportedGraph", "import_graph"]


def __getattr__(name: str) -> Any:
    # What runs a compiled graph needs modules of this package, but not the importer
    # and MLIR with it.
    import importlib

    if name in __all__:
        module = importlib.import_module("magweld.importer.importer")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
