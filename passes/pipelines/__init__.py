"""The compiler as lists of steps: the middle and its two ends."""
