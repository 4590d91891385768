"""The differential mode: hits compared with eager runs of the same calls."""
