"""Owns the dialect and the bases of its classes, so that ops import it in no cycle."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from magweld.bindings import ext


class TileGraphDialect(ext.Dialect, name="tile_graph"):  # type: ignore[call-arg, misc]
    """Operators as tiles, the edges between them and the memory levels they use.

    All ops are registered through IRDL, which binds each operand and result
    definition to one type. A variadic of tensors of different types cannot be stated,
    so ops with regions read values from around them instead of taking operands, and
    give one or two results.
    """


if TYPE_CHECKING:
    # The bindings have no types, and make these two classes as the program runs.
    class Operation:
        """Base of the ops."""

        OPERATION_NAME: ClassVar[str]
        _fields: ClassVar[Sequence[Any]]
        attributes: Any
        operation: Any

        def __init_subclass__(cls, *, name: str = "") -> None: ...
        def __init__(self, *arguments: Any) -> None: ...

    class Attribute:
        """Base of the attributes."""

        _fields: ClassVar[Sequence[Any]]
        params: Any

        def __init_subclass__(cls, *, name: str = "") -> None: ...
        def __init__(self, attribute: Any) -> None: ...
        @classmethod
        def get(cls, *parameters: Any) -> Self: ...

else:
    Operation = TileGraphDialect.Operation
    Attribute = TileGraphDialect.Attribute

OpT = TypeVar("OpT", bound=Operation)


def read_by_position(op_class: type[OpT]) -> type[OpT]:
    """Remove the accessors of operands and results from an op class.

    Those of `ext` read segment sizes, an attribute that ops with one optional operand
    or result need not have and ours do not. `op.operands` and `op.results` remain.
    """
    for field in op_class._fields:
        if isinstance(field, ext.OperandDef | ext.ResultDef):
            delattr(op_class, field.name)
    return op_class
