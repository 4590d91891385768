"""Lowering to NVVM and ROCDL."""
