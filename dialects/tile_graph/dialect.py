"""Owns the dialect class alone, so that ops can import it without a cycle."""

from typing import TypeVar

from magweld.bindings import ext

OpT = TypeVar("OpT", bound=type)


class TileGraphDialect(ext.Dialect, name="tile_graph"):
    """Operators as tiles, the edges between them and the memory levels they use.

    All ops are registered through IRDL, which binds each operand and result
    definition to one type. A variadic of tensors of different types cannot be stated,
    so ops with regions read values from around them instead of taking operands, and
    give one or two results.
    """


def read_by_position(op_class: OpT) -> OpT:
    """Remove the accessors of operands and results from an op class.

    Those of `ext` read segment sizes, an attribute that ops with one optional operand
    or result need not have and ours do not. `op.operands` and `op.results` remain.
    """
    for field in op_class._fields:
        if isinstance(field, ext.OperandDef | ext.ResultDef):
            delattr(op_class, field.name)
    return op_class
