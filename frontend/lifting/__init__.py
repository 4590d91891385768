"""Lifting: values that a record takes anew on every call instead of guarding them."""
