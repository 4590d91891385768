"""Passes that choose tiles and levels."""
