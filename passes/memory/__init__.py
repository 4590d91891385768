"""Owns the arena, and the running of graphs tile by tile in a memory budget."""
