"""Ahead-of-time compilation: artifacts that are saved, loaded and called."""
