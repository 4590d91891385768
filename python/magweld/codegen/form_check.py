"""Owns the native code that tells whether tensors have known forms, each its own.

All words of a tensor but some are compared with those of the known one: what is not
known of a word is never taken for equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from llvmlite import ir

from magweld.codegen.emitter import BYTE, POINTER, WORD, Emitter
from magweld.codegen.python_functions import call, give

NAME: Final = "have_known_forms"
_WORD_BYTES: Final = 8
# Where the class of an object of Python is in it.
_TYPE: Final = 8
# Words that are compared at once; the last ones overlap with those before.
_LANES: Final = 8
# Words of the data before those of each tensor, and before those of a form.
_HEAD: Final = 2
_FORM_HEAD: Final = 2
# Tensors that are told apart on the stack: by 32 KiB at most.
MOST_TENSORS: Final = 2048
# 2 to the power of 64 divided by the golden ratio: products with it are well spread.
_SPREAD: Final = 0x9E3779B97F4A7C15


class TensorPlaces(NamedTuple):
    """Where native code finds what of a tensor of Python.

    Attributes:
        words: Words that a tensor has.
        holder: At which byte of the object the address of these words is.
        autograd: Which word is the address of what autograd knows of it.
        meta_class: First word of that, for a tensor that is no view.
        wants: At which byte of that it is kept whether a leaf wants gradients.
        function: At which byte of that the function is that has made the tensor.
    """

    words: int
    holder: int
    autograd: int
    meta_class: int
    wants: int
    function: int


class KnownForm(NamedTuple):
    """What a tensor must have.

    Attributes:
        cls: Address of its class.
        wants: Whether it wants gradients.
        words: Its words.
        masks: Which of their bits count.
    """

    cls: int
    wants: bool
    words: tuple[int, ...]
    masks: tuple[int, ...]


def form_data(forms: Sequence[KnownForm | None]) -> list[int]:
    """Return the data of a function that checks tensors: their forms, in order.

    The first words are the number of tensors and the bits of the number of places of a
    table that tells them apart. Then comes for each the byte at which its form begins.

    Args:
        forms: None for a tensor of which only counts that it is none of the others.
    """
    begins: dict[KnownForm, int] = {}
    known: list[int] = []
    first = _HEAD + len(forms)
    for form in forms:
        if form is not None and form not in begins:
            begins[form] = (first + len(known)) * _WORD_BYTES
            pairs = zip(form.words, form.masks, strict=True)
            expected = [word & mask for word, mask in pairs]
            known += [form.cls, int(form.wants), *expected, *form.masks]
    bits = (2 * len(forms)).bit_length()
    places = [0 if form is None else begins[form] for form in forms]
    return [len(forms), bits, *places, *known]


def define_form_check(module: ir.Module, places: TensorPlaces) -> None:
    """Define the function, which takes tensors and gives whether they have their forms.

    It gives false also where an object comes twice.
    """
    kind = ir.FunctionType(POINTER, [POINTER, POINTER, WORD])
    _FormCheck(ir.Function(module, kind, NAME), places).emit()


class _FormCheck:
    def __init__(self, function: ir.Function, places: TensorPlaces) -> None:
        self._code = Emitter(function, _LANES)
        self._places = places
        self._no = function.append_basic_block("no")

    def emit(self) -> None:
        """Emit the body."""
        code, builder = self._code, self._code.builder
        held, tensors, count = code.arguments
        data = call(builder, "PyBytes_AsString", POINTER, [held])
        self._require("==", count, self._word(data, 0))
        bits = self._word(data, _WORD_BYTES)
        table = self._table(bits)
        with code.loop(0, count) as index:
            slot = builder.gep(tensors, [index], source_etype=POINTER)
            tensor = builder.load(slot, typ=POINTER)
            self._require_new(table, bits, tensor)
            place = code.product(code.sum(index, _HEAD), _WORD_BYTES)
            begin = self._word(data, place)
            with builder.if_then(builder.icmp_unsigned("!=", begin, code.word(0))):
                self._require_form(tensor, self._code.byte_at(data, begin))
        give(builder, True)
        give(ir.IRBuilder(self._no), False)

    def _require(self, relation: str, one: Any, other: Any) -> None:
        holds = self._code.builder.icmp_unsigned(relation, one, other)
        self._code.require(holds, self._no)

    def _word(self, pointer: Any, offset: Any) -> Any:
        """Load the word at some bytes behind an address."""
        return self._code.builder.load(self._code.byte_at(pointer, offset), typ=WORD)

    def _table(self, bits: Any) -> Any:
        """Return the address of 2 to the power of `bits` words that are zero."""
        builder, zero = self._code.builder, self._code.word(0)
        size = builder.shl(self._code.word(1), bits)
        table = builder.alloca(WORD, size=size)
        table.type = POINTER  # not one of what it points to
        with self._code.loop(0, size) as place:
            builder.store(zero, builder.gep(table, [place], source_etype=WORD))
        return table

    def _require_new(self, table: Any, bits: Any, tensor: Any) -> None:
        """Put the address of an object into the table, which must not have it."""
        code, builder = self._code, self._code.builder
        address = builder.ptrtoint(tensor, WORD)
        last = code.sum(builder.shl(code.word(1), bits), -1)
        spread = code.product(address, code.word(_SPREAD))
        first = builder.lshr(spread, builder.sub(code.word(64), bits))
        before = builder.block
        probe, taken, onward, free = map(
            builder.append_basic_block, ("probe", "taken", "onward", "free")
        )
        builder.branch(probe)
        builder.position_at_end(probe)
        place = builder.phi(WORD)
        slot = builder.gep(table, [place], source_etype=WORD)
        known = builder.load(slot, typ=WORD)
        is_free = builder.icmp_unsigned("==", known, code.word(0))
        builder.cbranch(is_free, free, taken)
        builder.position_at_end(taken)
        is_same = builder.icmp_unsigned("==", known, address)
        builder.cbranch(is_same, self._no, onward)
        builder.position_at_end(onward)
        place.add_incoming(first, before)
        place.add_incoming(builder.and_(code.sum(place, 1), last), onward)
        builder.branch(probe)
        builder.position_at_end(free)
        builder.store(address, slot)

    def _require_form(self, tensor: Any, form: Any) -> None:
        builder = self._code.builder
        self._require("==", self._word(tensor, _TYPE), self._word(form, 0))
        address = self._word(tensor, self._places.holder)
        words = builder.inttoptr(address, POINTER)
        zeros = ir.Constant(ir.VectorType(WORD, _LANES), [0] * _LANES)
        differing: Any = zeros
        for first in (*range(0, self._places.words - _LANES, _LANES - 1), None):
            begin = self._places.words - _LANES if first is None else first
            differing = builder.or_(differing, self._difference(words, form, begin))
        differs = builder.icmp_unsigned("!=", differing, zeros)
        lanes = builder.bitcast(differs, ir.IntType(_LANES))
        self._require("==", lanes, ir.Constant(lanes.type, 0))
        self._require_gradients(words, self._word(form, _WORD_BYTES))

    def _difference(self, words: Any, form: Any, first: int) -> Any:
        """Return the bits in which some words differ from those of a form."""
        builder = self._code.builder
        count, head = self._places.words, _FORM_HEAD
        starts = ((words, first), (form, head + first), (form, head + count + first))
        found, expected, masks = (
            builder.load(
                self._code.byte_at(pointer, _WORD_BYTES * start),
                typ=ir.VectorType(WORD, _LANES),
                align=_WORD_BYTES,
            )
            for pointer, start in starts
        )
        return builder.xor(builder.and_(found, masks), expected)

    def _require_gradients(self, words: Any, wanted: Any) -> None:
        """Ask what autograd knows: nothing, or that of a tensor that is no view."""
        code, builder, places = self._code, self._code.builder, self._places
        meta = self._word(words, _WORD_BYTES * places.autograd)
        zero = code.word(0)
        is_known = builder.icmp_unsigned("!=", meta, zero)
        with builder.if_else(is_known) as (known, unknown):
            with known:
                address = builder.inttoptr(meta, POINTER)
                expected = code.word(places.meta_class)
                self._require("==", self._word(address, 0), expected)
                flag = builder.load(self._code.byte_at(address, places.wants), typ=BYTE)
                function = self._word(address, places.function)
                wants = builder.or_(builder.zext(flag, WORD), function)
                is_wanted = builder.icmp_unsigned("!=", wants, zero)
                self._require("==", builder.zext(is_wanted, WORD), wanted)
            with unknown:
                self._require("==", wanted, zero)
