"""Turns LLVM IR text into machine code with llvmlite, for the host and for GPUs."""
