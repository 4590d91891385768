"""Transforms of linalg on whole tensors."""
