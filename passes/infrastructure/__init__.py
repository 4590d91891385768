"""Machinery of passes: their base classes, options, registry and running."""
