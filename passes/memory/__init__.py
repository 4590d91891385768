"""Owns the running of graphs tile by tile within a memory budget."""
