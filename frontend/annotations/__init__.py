"""Annotations: what native callables read, write and return."""
