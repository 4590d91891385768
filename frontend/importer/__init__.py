"""From a recorded graph to the torch dialect."""

from magweld.frontend.importer.importer import ImportedGraph, import_graph

__all__ = ["ImportedGraph", "import_graph"]
