"""The RefGraph: objects, versions, edges and paths."""
