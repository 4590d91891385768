"""Conditions under which a record is valid."""
