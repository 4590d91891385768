"""Owns the table of instructions that know lifted values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from magweld.frontend.lifting import calls, stack_rules, values
from magweld.frontend.lifting.shadow import Instruction, Rule
from magweld.frontend.monitor.code_table import Row


def _fixed(count: int) -> Callable[[Row], int]:
    return lambda row: count


# Values that an instruction takes, and what becomes of their expressions.
_FIXED: Final[dict[tuple[int, Rule | None], str]] = {
    (0, stack_rules.nothing): (
        "CACHE COPY_FREE_VARS EXTENDED_ARG JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT"
        " JUMP_FORWARD KW_NAMES LOAD_ASSERTION_ERROR LOAD_CLOSURE LOAD_CONST NOP"
        " PRECALL PUSH_NULL RESUME RETURN_GENERATOR RETURN_CONST IMPORT_FROM"
        " WITH_EXCEPT_START DELETE_GLOBAL DELETE_DEREF"
    ),
    (0, stack_rules.load): "LOAD_GLOBAL LOAD_DEREF",
    (0, stack_rules.load_local): "LOAD_FAST LOAD_FAST_CHECK",
    (0, stack_rules.load_and_clear): "LOAD_FAST_AND_CLEAR",
    (0, stack_rules.delete_local): "DELETE_FAST",
    (0, stack_rules.copy): "COPY",
    (0, stack_rules.make_cell): "MAKE_CELL",
    (1, stack_rules.nothing): (
        "POP_TOP POP_EXCEPT PUSH_EXC_INFO CHECK_EXC_MATCH"
        " POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE"
        " POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE"
        " POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE"
    ),
    (1, stack_rules.swap): "SWAP",
    (1, stack_rules.store_local): "STORE_FAST",
    (1, stack_rules.store_deref): "STORE_DEREF STORE_GLOBAL",
    (1, stack_rules.load): "LOAD_METHOD",
    (1, stack_rules.append): "LIST_APPEND",
    (1, stack_rules.extend): "LIST_EXTEND",
    (1, stack_rules.list_to_tuple): "LIST_TO_TUPLE",
    (1, stack_rules.call_intrinsic): "CALL_INTRINSIC_1",
    (1, stack_rules.merge): "DICT_MERGE DICT_UPDATE",
    (1, stack_rules.unpack): "UNPACK_SEQUENCE",
    (1, stack_rules.get_iter): "GET_ITER",
    (1, values.unary_op): "UNARY_INVERT UNARY_NEGATIVE UNARY_NOT UNARY_POSITIVE",
    (1, values.test): (
        "POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_TRUE"
        " POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_TRUE"
        " POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE"
    ),
    (1, values.test_or_pop): "JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP",
    (1, None): (
        "RETURN_VALUE BEFORE_WITH UNPACK_EX GET_YIELD_FROM_ITER SET_UPDATE SET_ADD"
        " DELETE_ATTR"
    ),
    (2, stack_rules.nothing): "END_FOR END_SEND",
    (2, values.is_op): "IS_OP",
    (2, values.subscript): "BINARY_SUBSCR",
    (2, values.contains_op): "CONTAINS_OP",
    (2, None): "IMPORT_NAME DELETE_SUBSCR",
    (2, stack_rules.map_add): "MAP_ADD",
    (3, stack_rules.store_subscript): "STORE_SUBSCR",
    (3, stack_rules.load): "LOAD_SUPER_ATTR",
    (3, values.binary_slice): "BINARY_SLICE",
    (4, None): "STORE_SLICE",
}

_VARIABLE: Final[dict[str, Instruction]] = {
    "FOR_ITER": Instruction(
        _fixed(0), stack_rules.for_iter, stack_rules.begin_iteration
    ),
    "BUILD_TUPLE": Instruction(lambda row: row.arg, stack_rules.build_sequence),
    "BUILD_LIST": Instruction(lambda row: row.arg, stack_rules.build_sequence),
    "BUILD_SLICE": Instruction(lambda row: row.arg, stack_rules.build_slice),
    "BUILD_MAP": Instruction(lambda row: 2 * row.arg, stack_rules.build_map),
    "BUILD_CONST_KEY_MAP": Instruction(
        lambda row: row.arg + 1, stack_rules.build_constant_map
    ),
    "BUILD_SET": Instruction(lambda row: row.arg),
    "BUILD_STRING": Instruction(lambda row: row.arg),
    "RAISE_VARARGS": Instruction(lambda row: row.arg),
    "FORMAT_VALUE": Instruction(lambda row: 2 if row.arg & 0x04 else 1),
    "MAKE_FUNCTION": Instruction(
        lambda row: 1 + row.arg.bit_count(), stack_rules.nothing
    ),
    "YIELD_VALUE": Instruction(_fixed(1), None, stack_rules.pin_now),
    "SEND": Instruction(_fixed(1), None, stack_rules.pin_now),
    "LOAD_ATTR": Instruction(_fixed(1), calls.load_attribute, calls.begin_load),
    "STORE_ATTR": Instruction(_fixed(2), calls.store_attribute, calls.begin_store),
    "BINARY_OP": Instruction(_fixed(2), values.binary_op, values.begin_binary),
    "COMPARE_OP": Instruction(_fixed(2), values.compare_op, values.begin_compare),
    "CALL": Instruction(lambda row: row.arg + 2, calls.finish_call, calls.begin_call),
    "CALL_FUNCTION_EX": Instruction(
        lambda row: 3 + (row.arg & 1), calls.finish_call, calls.begin_call_ex
    ),
}

# An instruction that is not here pins every expression on the stack of its frame.
INSTRUCTIONS: Final[dict[str, Instruction]] = {
    **{
        name: Instruction(_fixed(count), rule)
        for (count, rule), names in _FIXED.items()
        for name in names.split()
    },
    **_VARIABLE,
}
