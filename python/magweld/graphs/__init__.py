"""Captured graphs: their operators beside those of torch, and what runs them."""
