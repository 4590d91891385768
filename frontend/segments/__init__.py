"""Segments: parts of a run between breaks, and functions that go on in the middle."""
