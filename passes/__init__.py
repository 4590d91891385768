"""Passes and pipelines; never imports torch."""
