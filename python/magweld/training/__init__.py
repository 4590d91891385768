"""Captured graphs that need gradients: forward and backward halves, both compiled."""
