"""Passes that make execution plans of scheduled groups and lower them to tiles."""
