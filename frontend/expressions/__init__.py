"""Lifted numbers as expressions of what a call brings, with their leaves."""
