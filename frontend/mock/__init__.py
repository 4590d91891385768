"""Replays the side effects of a recorded run."""
