"""Owns tuning: plans of the parts of a graph that are chosen by measuring."""
