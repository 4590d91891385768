"""Owns masks of bytes: those of a block of keys become floats that are added.

Rows of a head often have one mask, that of padding: it is read once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from llvmlite import ir

from magweld.codegen.emitter import BYTE, FLOAT, POINTER, WORD, Emitter, define
from magweld.codegen.masked_loads import load_some


@dataclass(frozen=True)
class AttentionMasks:
    """Defines the function in a module.

    Attributes:
        module: The module.
        lanes: Floats of a vector.
    """

    module: ir.Module
    lanes: int

    @cached_property
    def spread(self) -> ir.Function:
        """(mask, seen, unseen, count, target): the float that each byte chooses.

        Both floats are given by their addresses. Whole vectors of the target are
        written; bytes behind the last one are not read.
        """
        kinds = (*[POINTER] * 3, WORD, POINTER)
        function = define(self.module, "attention_mask", *kinds)
        code = Emitter(function, self.lanes)
        mask, *addresses, count, target = code.arguments
        builder = code.builder
        choices = [
            code.spread(builder.load(one, typ=FLOAT, align=4)) for one in addresses
        ]
        rest = builder.urem(count, code.word(self.lanes))
        whole = builder.sub(count, rest)
        with code.loop(0, whole, self.lanes) as place:
            kind = ir.VectorType(BYTE, self.lanes)
            read = builder.load(code.byte_at(mask, place), typ=kind, align=1)
            code.store(_chosen(code, read, choices), target, place)
        with builder.if_then(builder.icmp_unsigned("!=", rest, code.word(0))):
            address = code.byte_at(mask, whole)
            read = load_some(code, address, code.lanes_before(rest), BYTE)
            code.store(_chosen(code, read, choices), target, whole)
        builder.ret_void()
        return function


def _chosen(code: Emitter, read: Any, choices: list[Any]) -> Any:
    """Return the floats that some bytes choose."""
    is_set = code.builder.icmp_unsigned("!=", read, ir.Constant(read.type, None))
    return code.builder.select(is_set, *choices)
