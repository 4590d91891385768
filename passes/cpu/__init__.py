"""Lowering to x86."""
