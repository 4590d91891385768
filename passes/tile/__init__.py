"""The tile graph: forming it, implementations, connections, groups, tiles."""
