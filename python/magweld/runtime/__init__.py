"""Runs compiled programs: loads code, plans calls, keeps the compile cache."""
