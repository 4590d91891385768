"""Owns the table of instructions of CPython 3.11 to 3.14."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from magweld.frontend.lifting import call_rules, stack_rules, value_rules
from magweld.frontend.monitor.code_table import Instruction, Row, spread_count
from magweld.frontend.rules import (
    attribute_writes,
    attributes,
    calls,
    class_statements,
    comparisons,
    containers,
    displays,
    names,
    natives,
    operators,
    statements,
    text,
)


def _counted(row: Row) -> int:
    return row.arg


def _of_parts(row: Row) -> int:
    return row.depth - min(part.depth - part.taken for part in row.parts)


_TABLE: Final = {
    # Instructions that touch nothing but the frame's own stack and locals. Those that
    # compare with None test a flag of the class, which is guarded with the object.
    "COPY": Instruction(None, 0, stack_rules.copy),
    "DELETE_FAST": Instruction(None, 0, stack_rules.delete_local),
    "LOAD_FAST_AND_CLEAR": Instruction(None, 0, stack_rules.load_and_clear),
    "LOAD_FAST_CHECK": Instruction(None, 0, stack_rules.load_local),
    "MAKE_CELL": Instruction(None, 0, stack_rules.make_cell),
    (
        "CACHE COPY_FREE_VARS EXTENDED_ARG JUMP_BACKWARD"
        " JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD LOAD_ASSERTION_ERROR"
        " NOP PUSH_NULL RESUME RETURN_CONST RETURN_GENERATOR"
    ): Instruction(None, 0, stack_rules.nothing),
    "SEND": Instruction(None, 1, None, stack_rules.pin_now),
    (
        "POP_EXCEPT POP_JUMP_BACKWARD_IF_NONE"
        " POP_JUMP_BACKWARD_IF_NOT_NONE POP_JUMP_FORWARD_IF_NONE"
        " POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_IF_NONE"
        " POP_JUMP_IF_NOT_NONE POP_TOP"
    ): Instruction(None, 1, stack_rules.nothing),
    "STORE_FAST": Instruction(None, 1, stack_rules.store_local),
    "SWAP": Instruction(None, 1, stack_rules.swap),
    "END_FOR": Instruction(
        None, 1 if sys.version_info >= (3, 13) else 2, stack_rules.nothing
    ),
    "END_SEND SET_FUNCTION_ATTRIBUTE": Instruction(None, 2, stack_rules.nothing),
    "CLEANUP_THROW RERAISE": Instruction(None),
    "BUILD_STRING": Instruction(None, _counted),
    "BEFORE_WITH": Instruction(statements.before_with, 1),
    "BINARY_OP": Instruction(
        operators.binary_op, 2, value_rules.binary_op, value_rules.begin_binary
    ),
    "BINARY_SLICE": Instruction(containers.binary_slice, 3, value_rules.binary_slice),
    "BINARY_SUBSCR": Instruction(containers.binary_subscr, 2, value_rules.subscript),
    "BUILD_CONST_KEY_MAP": Instruction(
        displays.build, lambda row: row.arg + 1, stack_rules.build_constant_map
    ),
    "BUILD_LIST BUILD_TUPLE": Instruction(
        displays.build, _counted, stack_rules.build_sequence
    ),
    "BUILD_MAP": Instruction(
        displays.build_map, lambda row: 2 * row.arg, stack_rules.build_map
    ),
    "BUILD_SET": Instruction(displays.build_set, _counted),
    "BUILD_SLICE": Instruction(displays.build, _counted, stack_rules.build_slice),
    "CALL": Instruction(
        calls.call,
        lambda row: row.arg + 2,
        call_rules.finish_call,
        call_rules.begin_call,
    ),
    "CALL_FUNCTION_EX": Instruction(
        calls.call_function_ex,
        lambda row: spread_count(row.arg),
        call_rules.finish_call,
        call_rules.begin_call_ex,
    ),
    "CALL_KW": Instruction(
        calls.call_kw,
        lambda row: row.arg + 3,
        call_rules.finish_call,
        call_rules.begin_call_kw,
    ),
    "CALL_INTRINSIC_1": Instruction(statements.call_intrinsic, 1, stack_rules.nothing),
    "CHECK_EXC_MATCH": Instruction(statements.check_exc_match, 1, stack_rules.nothing),
    "COMPARE_OP": Instruction(
        comparisons.compare_op, 2, value_rules.compare_op, value_rules.begin_compare
    ),
    "CONTAINS_OP": Instruction(
        comparisons.contains_op,
        2,
        value_rules.contains_op,
        stepless=stack_rules.always,
    ),
    "CONVERT_VALUE": Instruction(text.convert_value, 1),
    "DELETE_ATTR": Instruction(attribute_writes.delete_attribute, 1),
    "DELETE_DEREF": Instruction(names.store_deref, 0, stack_rules.nothing),
    "DELETE_GLOBAL": Instruction(names.delete_global, 0, stack_rules.nothing),
    "DELETE_NAME SETUP_ANNOTATIONS STORE_NAME": Instruction(
        class_statements.store_name
    ),
    "DELETE_SUBSCR": Instruction(containers.delete_subscr, 2),
    "DICT_MERGE DICT_UPDATE": Instruction(displays.merge, 1, stack_rules.merge),
    "FORMAT_SIMPLE": Instruction(text.format_simple, 1),
    "FORMAT_VALUE": Instruction(
        text.format_value, lambda row: 2 if row.arg & 0x04 else 1
    ),
    "FORMAT_WITH_SPEC": Instruction(text.format_with_spec, 2),
    "FOR_ITER": Instruction(
        containers.for_iter, 0, stack_rules.for_iter, stack_rules.begin_iteration
    ),
    "GET_ITER": Instruction(containers.get_iter, 1, stack_rules.get_iter),
    "GET_LEN": Instruction(statements.get_length),
    "GET_YIELD_FROM_ITER": Instruction(containers.get_iter, 1),
    "IMPORT_FROM": Instruction(
        names.import_from, 0, stack_rules.nothing, stepless=stack_rules.always
    ),
    "IMPORT_NAME": Instruction(names.import_name, 2),
    "IS_OP": Instruction(
        comparisons.is_op, 2, value_rules.is_op, stepless=stack_rules.always
    ),
    "JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP": Instruction(
        operators.truth_op, 1, value_rules.test_or_pop
    ),
    "KW_NAMES": Instruction(
        calls.keyword_names, 0, stack_rules.nothing, stepless=stack_rules.always
    ),
    "LIST_APPEND": Instruction(displays.append, 1, stack_rules.append),
    "LIST_EXTEND": Instruction(
        displays.extend, 1, stack_rules.extend, stack_rules.begin_spread
    ),
    "LIST_TO_TUPLE": Instruction(displays.list_to_tuple, 1, stack_rules.list_to_tuple),
    "LOAD_ATTR": Instruction(
        attributes.load_attribute,
        1,
        stack_rules.claim,
        call_rules.begin_load,
        call_rules.loads_plainly,
    ),
    "LOAD_BUILD_CLASS": Instruction(class_statements.load_build_class),
    "LOAD_CLASSDEREF": Instruction(class_statements.load_class_deref),
    "LOAD_CLOSURE": Instruction(
        names.load_closure, 0, stack_rules.nothing, stepless=stack_rules.always
    ),
    "LOAD_COMMON_CONSTANT": Instruction(displays.load_common, 0, stack_rules.nothing),
    "LOAD_CONST": Instruction(
        displays.load_constant, 0, stack_rules.nothing, stepless=stack_rules.always
    ),
    "LOAD_DEREF": Instruction(
        names.load_deref, 0, stack_rules.claim, stepless=stack_rules.always
    ),
    "LOAD_FAST": Instruction(
        displays.load_local, 0, stack_rules.load_local, stepless=stack_rules.always
    ),
    "LOAD_FAST_LOAD_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST": Instruction(
        displays.each_part, _of_parts, stack_rules.each_part
    ),
    "LOAD_FROM_DICT_OR_DEREF LOAD_FROM_DICT_OR_GLOBALS": Instruction(
        class_statements.load_from_dict
    ),
    "LOAD_GLOBAL": Instruction(
        names.load_global, 0, stack_rules.claim, stepless=stack_rules.always
    ),
    "LOAD_LOCALS": Instruction(displays.load_common),
    "LOAD_METHOD": Instruction(
        attributes.load_attribute, 1, stack_rules.claim, stepless=stack_rules.always
    ),
    "LOAD_NAME": Instruction(class_statements.load_name),
    "LOAD_SPECIAL": Instruction(statements.load_special, 1),
    "LOAD_SUPER_ATTR": Instruction(
        attributes.load_super_attribute, 3, stack_rules.claim
    ),
    "MAKE_FUNCTION": Instruction(
        displays.build, lambda row: 1 + row.arg.bit_count(), stack_rules.nothing
    ),
    "MAP_ADD": Instruction(displays.append, 2, stack_rules.map_add),
    "MATCH_CLASS": Instruction(statements.match_class),
    "MATCH_KEYS": Instruction(statements.match_keys),
    "MATCH_MAPPING MATCH_SEQUENCE": Instruction(statements.match_shape),
    (
        "POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_TRUE"
        " POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_TRUE"
        " POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE"
    ): Instruction(
        operators.truth_op, 1, value_rules.test, stepless=stack_rules.always
    ),
    "PRECALL": Instruction(
        calls.precall, 0, stack_rules.nothing, stepless=stack_rules.always
    ),
    "PUSH_EXC_INFO": Instruction(statements.push_exc_info, 1, stack_rules.nothing),
    "RAISE_VARARGS": Instruction(statements.raise_varargs, _counted),
    "RETURN_VALUE": Instruction(natives.hand_over, 1),
    "SET_ADD": Instruction(displays.append, 1),
    "SET_UPDATE": Instruction(displays.extend, 1),
    "STORE_ATTR": Instruction(
        attribute_writes.store_attribute,
        2,
        call_rules.store_attribute,
        call_rules.begin_store,
    ),
    "STORE_DEREF": Instruction(names.store_deref, 1, stack_rules.store_deref),
    "STORE_GLOBAL": Instruction(names.store_global, 1, stack_rules.store_deref),
    "STORE_SLICE": Instruction(containers.store_slice, 4),
    "STORE_SUBSCR": Instruction(
        containers.store_subscr, 3, stack_rules.store_subscript
    ),
    "UNARY_INVERT UNARY_NEGATIVE UNARY_POSITIVE": Instruction(
        operators.unary_op, 1, value_rules.unary_op
    ),
    "TO_BOOL UNARY_NOT": Instruction(operators.truth_op, 1, value_rules.unary_op),
    "UNPACK_EX": Instruction(containers.unpack, 1),
    "UNPACK_SEQUENCE": Instruction(
        containers.unpack, 1, stack_rules.unpack, stack_rules.begin_spread
    ),
    "WITH_EXCEPT_START": Instruction(
        statements.with_except_start, 0, stack_rules.nothing
    ),
    "YIELD_VALUE": Instruction(natives.hand_over, 1),
}
# Instructions by the first version that has them, and by the first that has them no
# more. All others are in every version.
_SINCE: Final = {
    (3, 12): (
        "BINARY_SLICE CALL_INTRINSIC_1 CLEANUP_THROW END_FOR END_SEND"
        " LOAD_FAST_AND_CLEAR LOAD_FAST_CHECK LOAD_FROM_DICT_OR_DEREF"
        " LOAD_FROM_DICT_OR_GLOBALS LOAD_LOCALS LOAD_SUPER_ATTR POP_JUMP_IF_FALSE"
        " POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_IF_TRUE RETURN_CONST"
        " STORE_SLICE"
    ),
    (3, 13): (
        "CALL_KW CONVERT_VALUE FORMAT_SIMPLE FORMAT_WITH_SPEC LOAD_FAST_LOAD_FAST"
        " SET_FUNCTION_ATTRIBUTE STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST TO_BOOL"
    ),
    (3, 14): "LOAD_COMMON_CONSTANT LOAD_SPECIAL",
}
_UNTIL: Final = {
    (3, 12): (
        "JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP LOAD_CLASSDEREF"
        " LOAD_METHOD POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE"
        " POP_JUMP_BACKWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE"
        " POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE"
        " POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE PRECALL"
    ),
    (3, 13): "FORMAT_VALUE KW_NAMES LOAD_CLOSURE",
    (3, 14): "BEFORE_WITH BUILD_CONST_KEY_MAP LOAD_ASSERTION_ERROR RETURN_CONST",
}


def _absent(version: tuple[int, int]) -> Iterable[str]:
    """Yield the names of the instructions that a version does not have."""
    for first, group in _SINCE.items():
        if version < first:
            yield from group.split()
    for end, group in _UNTIL.items():
        if version >= end:
            yield from group.split()


def instructions_of(version: tuple[int, int]) -> dict[str, Instruction]:
    """Return what the instructions of a version of CPython do, by name."""
    absent = frozenset(_absent(version))
    return {
        name: instruction
        for group, instruction in _TABLE.items()
        for name in group.split()
        if name not in absent
    }


# An instruction that is not here ends the recording.
INSTRUCTIONS: Final[dict[str, Instruction]] = instructions_of(sys.version_info[:2])
