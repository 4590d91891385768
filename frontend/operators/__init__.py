"""The tensor side of a monitored run: torch operators recorded as a graph."""
