"""Control flow on tensor values as operators of the graph."""
