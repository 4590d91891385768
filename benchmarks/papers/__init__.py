"""Models of the whole-model benchmark that are written from their papers."""
