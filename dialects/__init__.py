"""MLIR dialects defined in Python: loading them and exporting them as IRDL."""

from magweld.bindings import ext, ir, passmanager, registry
from magweld.dialects.tile_graph import TileGraphDialect

__all__ = ["irdl_module", "load_dialects"]

_DIALECTS: tuple[type[ext.Dialect], ...] = (TileGraphDialect,)

# To find the class of an op or attribute, the bindings import `<prefix>.<dialect>`,
# and search anew on every look-up until some prefix has it: five times slower.
registry.append_dialect_search_prefix(__name__)


def load_dialects(context: ir.Context) -> None:
    """Load every dialect of magweld into a context; loading again does nothing."""
    with context:
        for dialect in _DIALECTS:
            if not context.is_dialect_loaded(dialect.DIALECT_NAMESPACE):
                dialect.load()


def irdl_module() -> str:
    """Return the definitions of all dialects as IRDL.

    `mlir-opt --irdl-file=FILE` reads and checks our IR with it. IRDL states operands,
    results, attributes and regions; the rules of the Python verifiers are not in it.
    """
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            for dialect in _DIALECTS:
                dialect._emit_dialect()
        passmanager.PassManager.parse("builtin.module(cse)").run(module.operation)
        return str(module)
