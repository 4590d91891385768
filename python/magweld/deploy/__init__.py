"""Portable artifacts: code that runs without torch, LLVM and Python."""
