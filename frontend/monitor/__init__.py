"""Observes one run of a program: interpreter events and torch calls."""
