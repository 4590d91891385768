"""magweld compiles eager PyTorch programs through MLIR."""

__version__ = "0.1.0"
