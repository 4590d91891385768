"""Passes at the borders between phases."""
