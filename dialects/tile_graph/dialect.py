"""Owns the dialect class alone, so that ops can import it without a cycle."""

from magweld.bindings import ext


class TileGraphDialect(ext.Dialect, name="tile_graph"):
    """Operators as tiles, the edges between them and the memory levels they use."""
