"""Passes on linalg and on the whole tile graph."""
