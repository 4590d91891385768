"""Owns how kernels that are written by hand are emitted: loops, vectors, offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from llvmlite import ir

POINTER: Final = ir.PointerType()
WORD: Final = ir.IntType(64)
INT: Final = ir.IntType(32)
BYTE: Final = ir.IntType(8)
FLOAT: Final = ir.FloatType()
VOID: Final = ir.VoidType()
# Tensors begin and end anywhere: no load or store is of an aligned vector.
_ALIGNMENT: Final = 4


class Emitter:
    """Emits one function of floats, vectors of some lanes, and words.

    Offsets are in floats and may be numbers.

    Attributes:
        lanes: Floats of a vector.
        vector: Its type.
        builder: For all that has no method here.
    """

    def __init__(self, function: ir.Function, lanes: int) -> None:
        self.lanes = lanes
        self.vector = ir.VectorType(FLOAT, lanes)
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))

    @property
    def arguments(self) -> Sequence[Any]:
        """What the function is called with."""
        return [*self.builder.function.args]

    def word(self, value: Any) -> Any:
        """Return a value as one of the code; a number as a constant."""
        return ir.Constant(WORD, value) if isinstance(value, int) else value

    def sum(self, *values: Any) -> Any:
        """Return the sum of words."""
        first, *others = map(self.word, values)
        for other in others:
            first = self.builder.add(first, other)
        return first

    def product(self, *values: Any) -> Any:
        """Return the product of words."""
        first, *others = map(self.word, values)
        for other in others:
            first = self.builder.mul(first, other)
        return first

    def least(self, one: Any, other: Any) -> Any:
        """Return the smaller one of two words."""
        one, other = self.word(one), self.word(other)
        return self.builder.select(
            self.builder.icmp_signed("<", one, other), one, other
        )

    def most(self, one: Any, other: Any) -> Any:
        """Return the larger one of two words."""
        one, other = self.word(one), self.word(other)
        return self.builder.select(
            self.builder.icmp_signed(">", one, other), one, other
        )

    def at(self, pointer: Any, *offsets: Any) -> Any:
        """Return the address behind another one."""
        return self.builder.gep(pointer, [self.sum(*offsets)], source_etype=FLOAT)

    def load(self, pointer: Any, *offsets: Any) -> Any:
        """Load a vector."""
        address = self.at(pointer, *offsets)
        return self.builder.load(address, typ=self.vector, align=_ALIGNMENT)

    def store(self, value: Any, pointer: Any, *offsets: Any) -> None:
        """Store a vector."""
        self.builder.store(value, self.at(pointer, *offsets), align=_ALIGNMENT)

    def byte_at(self, pointer: Any, offset: Any) -> Any:
        """Return the address some bytes behind another one."""
        return self.builder.gep(pointer, [self.word(offset)], source_etype=BYTE)

    def word_at(self, pointer: Any, number: Any) -> Any:
        """Return the address some words behind another one."""
        return self.builder.gep(pointer, [self.word(number)], source_etype=WORD)

    def load_word(self, pointer: Any, number: Any) -> Any:
        """Load the word some words behind an address."""
        return self.builder.load(self.word_at(pointer, number), typ=WORD)

    def require(self, condition: Any, otherwise: ir.Block) -> None:
        """Go on where a condition holds, and to another block where it does not."""
        onward = self.builder.append_basic_block("onward")
        self.builder.cbranch(condition, onward, otherwise)
        self.builder.position_at_end(onward)

    def spread(self, scalar: Any) -> Any:
        """Return a vector of one float."""
        if isinstance(scalar, float):
            return ir.Constant(self.vector, [scalar] * self.lanes)
        poison = ir.Constant(self.vector, ir.Undefined)
        zero = ir.Constant(INT, 0)
        first = self.builder.insert_element(poison, scalar, zero)
        return self.shuffle(first, first, [0] * self.lanes)

    def lanes_before(self, limit: Any) -> Any:
        """Return which lanes have a number below a word, as bits."""
        words = ir.VectorType(INT, self.lanes)
        first = self.builder.insert_element(
            ir.Constant(words, ir.Undefined),
            self.builder.trunc(limit, INT),
            ir.Constant(INT, 0),
        )
        limits = self.shuffle(first, first, [0] * self.lanes)
        numbers = ir.Constant(words, list(range(self.lanes)))
        return self.builder.icmp_signed("<", numbers, limits)

    def shuffle(self, one: Any, other: Any, lanes: Sequence[int]) -> Any:
        """Return some lanes of two vectors, those of the other one behind."""
        mask = ir.Constant(ir.VectorType(INT, len(lanes)), list(lanes))
        return self.builder.shuffle_vector(one, other, mask)

    def fma(self, one: Any, other: Any, term: Any) -> Any:
        """Return one * other + term, rounded once."""
        return self._call("fma", one, other, term)

    def root(self, value: Any) -> Any:
        """Return the square root."""
        return self._call("sqrt", value)

    def _call(self, name: str, *values: Any) -> Any:
        """Call a function of LLVM on vectors."""
        name = f"llvm.{name}.v{self.lanes}f32"
        module = self.builder.module
        function = module.globals.get(name)
        if function is None:
            kind = ir.FunctionType(self.vector, [self.vector] * len(values))
            function = ir.Function(module, kind, name)
        return self.builder.call(function, values)

    def across(self, value: Any, combine: Callable[[Any, Any], Any]) -> Any:
        """Return a vector of which each lane has what all lanes of another one give.

        Args:
            value: The other one.
            combine: Returns what two vectors give lane by lane.
        """
        distance = self.lanes // 2
        while distance:
            lanes = [lane ^ distance for lane in range(self.lanes)]
            value = combine(value, self.shuffle(value, value, lanes))
            distance //= 2
        return value

    def variable(self, value: Any) -> Any:
        """Return the address of a variable with a first value."""
        address = self._allocated(value.type)
        self.builder.store(value, address)
        return address

    def room(self, floats: int) -> Any:
        """Return the address of memory that the function has while it runs."""
        return self._allocated(ir.ArrayType(FLOAT, floats))

    def words(self, count: int) -> Any:
        """Return the address of words that the function has while it runs."""
        return self._allocated(ir.ArrayType(WORD, count))

    def _allocated(self, type_: Any) -> Any:
        with self.builder.goto_entry_block():
            address = self.builder.alloca(type_)
        address.type = POINTER  # not one of what it points to
        return address

    @contextmanager
    def loop(self, start: Any, stop: Any, step: Any = 1) -> Iterator[Any]:
        """Emit a loop around what is emitted inside, which gets the number."""
        builder = self.builder
        start, stop, step = map(self.word, (start, stop, step))
        before = builder.block
        head, body, done = map(
            builder.append_basic_block, ("loop.head", "loop.body", "loop.done")
        )
        builder.branch(head)
        builder.position_at_end(head)
        number = builder.phi(WORD)
        number.add_incoming(start, before)
        builder.cbranch(builder.icmp_signed("<", number, stop), body, done)
        builder.position_at_end(body)
        yield number
        number.add_incoming(builder.add(number, step), builder.block)
        builder.branch(head)
        builder.position_at_end(done)


def define(module: ir.Module, name: str, *types: Any) -> ir.Function:
    """Return a function without result that only its module sees."""
    function = ir.Function(module, ir.FunctionType(VOID, types), name)
    function.linkage = "internal"
    return function
