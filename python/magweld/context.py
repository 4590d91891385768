"""Owns the making of MLIR contexts that know magweld's dialects."""

from magweld.bindings import ir, register_torch_dialect


def make_context() -> ir.Context:
    """Return a new context: upstream and torch dialects registered, ours loaded.

    Multithreading is off: passes and verifiers written in Python must run in the
    thread that holds the interpreter lock.
    """
    from magweld.dialects import load_dialects

    context = make_torch_context()
    load_dialects(context)
    return context


def make_torch_context() -> ir.Context:
    """Return a new context for modules in the torch dialect: ours are not imported."""
    context = ir.Context()
    context.enable_multithreading(False)
    register_torch_dialect(context)
    return context
