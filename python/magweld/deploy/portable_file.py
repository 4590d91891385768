"""Owns the bytes of portable artifacts; `magweld.c` reads the same.

A file is a header of 64 bytes, a description of 64-bit words, then constants and
machine code at multiples of 64 bytes. All numbers are little-endian. The header: magic,
version, bytes of the file, bytes of the description, SHA-256 of the file with zeros in
place of the digest. docs/deployment.md describes the words.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import prod
from pathlib import Path

from magweld.aot.errors import ArtifactError

MAGIC = b"magweld\0"
VERSION = 1
ALIGNMENT = 64
PAGE = 4096
MAX_RANK = 8
# Item size of each element type; its code is its position, from one on.
DTYPES = {
    **{"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2},
    **{"int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1},
    **{"uint16": 2, "uint32": 4, "uint64": 8, "complex64": 8},
}
_NAMES = tuple(DTYPES)
# Where memory of a program ends: no sum of offsets overflows.
_LIMIT = 1 << 48

_HEADER = struct.Struct("<8sQQQ32s")


class Kind(IntEnum):
    """What an entry of the table of a program is the address of."""

    NONE = 0  # set by the code
    RUNTIME = 1  # what `magweld_parallel` needs
    INPUT = 2  # input `index`, contiguous
    OUTPUT = 3  # output `index`, contiguous
    FRAME = 4  # memory of this run, from `offset` on
    DATA = 5  # the file, from `offset` on


@dataclass(frozen=True)
class Place:
    """An address: `offset` bytes into something."""

    kind: Kind
    index: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Copy:
    """A copy of elements after the code has run.

    Attributes:
        source: Where they are.
        target: Where they go.
        item: Bytes of an element.
        axes: For each axis its extent and its strides in source and target, in bytes.
    """

    source: Place
    target: Place
    item: int
    axes: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Port:
    """A tensor that goes in or out: its name and element type."""

    name: str
    dtype: str


@dataclass(frozen=True)
class Code:
    """An image for CPUs of a level: 3 for x86-64-v3, 4 for x86-64-v4.

    Attributes:
        level: The level.
        data: The image, see `magweld.codegen.linking.Image`.
        text_bytes: Bytes of it that are code.
        imports: Where addresses of functions go, with their names.
    """

    level: int
    data: bytes = field(repr=False)
    text_bytes: int
    imports: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Form:
    """A program for inputs of certain shapes.

    Attributes:
        code: Position of its image.
        entry: Where in it `int64_t entry(void** table)` is.
        frame_bytes: Memory that a run needs.
        inputs: Shapes of the inputs.
        outputs: Shapes of the outputs.
        table: What the entry function gets.
        copies: What follows it.
    """

    code: int
    entry: int
    frame_bytes: int
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    table: tuple[Place, ...]
    copies: tuple[Copy, ...]


@dataclass(frozen=True)
class PortableProgram:
    """What a portable artifact holds.

    Attributes:
        producer: Who wrote it.
        structure: How Python puts inputs and the result together, as JSON.
        inputs: The inputs, in the order in which they are passed.
        outputs: The outputs.
        failures: What the number that code returns means; 1 is the first.
        codes: Images.
        forms: Programs; the first that fits is taken.
        data: Constants. Places of kind `DATA` are offsets in it, or in a file that was
            read.
    """

    producer: str
    structure: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    failures: tuple[str, ...]
    codes: tuple[Code, ...]
    forms: tuple[Form, ...]
    data: bytes = field(repr=False)


def encode(program: PortableProgram) -> bytes:
    """Return the bytes of a file."""
    # Places are needed for the words, and the words for the places: their number does
    # not depend on what they say.
    empty = _words(program, 0, [0] * len(program.codes))
    data_at = _aligned(_HEADER.size + len(empty))
    places, at = [], data_at + _aligned(len(program.data))
    for code in program.codes:
        places.append(at)
        at += _aligned(len(code.data))
    words = _words(program, data_at, places)
    parts = [program.data, *(code.data for code in program.codes)]
    body = bytearray(words.ljust(data_at - _HEADER.size, b"\0"))
    for part in parts:
        body += part.ljust(_aligned(len(part)), b"\0")
    return seal(bytes(body), len(words))


def seal(body: bytes, described: int) -> bytes:
    """Return a file: the header, then what follows it.

    Args:
        body: The description and what is behind it.
        described: Bytes of the description.
    """
    facts = (MAGIC, VERSION, _HEADER.size + len(body), described)
    digest = hashlib.sha256(_HEADER.pack(*facts, bytes(32)) + body).digest()
    return _HEADER.pack(*facts, digest) + body


def is_portable(path: Path) -> bool:
    """Tell whether a file is a portable artifact, by how it begins.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def decode(data: bytes) -> PortableProgram:
    """Return what a file holds; its `data` is the whole file.

    Raises:
        ArtifactError: `artifact-damaged` or `artifact-version`.
    """
    if len(data) < _HEADER.size or not data.startswith(MAGIC):
        raise _damaged("it is no portable artifact")
    _, version, size, described, digest = _HEADER.unpack_from(data)
    if version != VERSION:
        raise ArtifactError(
            "artifact-version",
            f"the file has format version {version}, expected {VERSION}",
        )
    if size != len(data):
        raise _damaged(f"it has {len(data)} bytes, expected {size}")
    content = data[:32] + bytes(32) + data[_HEADER.size :]
    if hashlib.sha256(content).digest() != digest:
        raise _damaged("the digest does not match")
    try:
        program = _Reader(data[_HEADER.size : _HEADER.size + described]).program(data)
        _check(program)
    except (struct.error, ValueError, IndexError) as error:
        raise _damaged(str(error)) from error
    return program


def contiguous_strides(shape: Sequence[int], item: int = 1) -> tuple[int, ...]:
    """Return strides of a row-major tensor, times `item`."""
    return tuple(item * prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _damaged(reason: str) -> ArtifactError:
    return ArtifactError("artifact-damaged", f"no intact portable artifact: {reason}")


def _aligned(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT


def _words(program: PortableProgram, data_at: int, codes: Sequence[int]) -> bytes:
    out = _Writer(data_at)
    out.text(program.producer)
    out.text(program.structure)
    for ports in (program.inputs, program.outputs):
        out.number(len(ports))
        for port in ports:
            out.text(port.name)
            out.number(_NAMES.index(port.dtype) + 1)
    out.number(len(program.failures))
    for failure in program.failures:
        out.text(failure)
    out.number(len(program.codes))
    for code, at in zip(program.codes, codes, strict=True):
        out.number(code.level, at, len(code.data), code.text_bytes, len(code.imports))
        for slot, name in code.imports:
            out.number(slot)
            out.text(name)
    out.number(len(program.forms))
    for form in program.forms:
        out.form(form)
    return b"".join(out.parts)


class _Writer:
    def __init__(self, data_at: int) -> None:
        self.parts: list[bytes] = []
        self._data_at = data_at

    def number(self, *numbers: int) -> None:
        self.parts.append(struct.pack(f"<{len(numbers)}q", *numbers))

    def text(self, text: str) -> None:
        data = text.encode()
        self.number(len(data))
        # A zero follows, so that C can point to it.
        self.parts.append(data + bytes(8 - len(data) % 8))

    def shape(self, shape: Sequence[int]) -> None:
        self.number(len(shape), *shape)

    def place(self, place: Place) -> None:
        shift = self._data_at if place.kind is Kind.DATA else 0
        self.number(place.kind, place.index, place.offset + shift)

    def form(self, form: Form) -> None:
        self.number(form.code, form.entry, form.frame_bytes)
        for shape in (*form.inputs, *form.outputs):
            self.shape(shape)
        self.number(len(form.table))
        for place in form.table:
            self.place(place)
        self.number(len(form.copies))
        for copy in form.copies:
            self.place(copy.source)
            self.place(copy.target)
            self.number(copy.item, len(copy.axes))
            for axis in copy.axes:
                self.number(*axis)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def program(self, file: bytes) -> PortableProgram:
        producer, structure = self._text(), self._text()
        inputs, outputs = self._ports(), self._ports()
        failures = tuple(self._text() for _ in self._counted())
        codes = tuple(self._code(file) for _ in self._counted())
        forms = tuple(self._form(len(inputs), len(outputs)) for _ in self._counted())
        if self._at != len(self._data):
            raise ValueError("words are left after the last program")
        return PortableProgram(
            producer, structure, inputs, outputs, failures, codes, forms, file
        )

    def _number(self) -> int:
        (number,) = struct.unpack_from("<q", self._data, self._at)
        self._at += 8
        return int(number)

    def _counted(self) -> range:
        count = self._number()
        if not 0 <= count <= len(self._data):
            raise ValueError(f"a list of {count}")
        return range(count)

    def _text(self) -> str:
        count = len(self._counted())
        text = self._data[self._at : self._at + count]
        self._at += count + 8 - count % 8
        return text.decode()

    def _ports(self) -> tuple[Port, ...]:
        return tuple(Port(self._text(), self._dtype()) for _ in self._counted())

    def _dtype(self) -> str:
        number = self._number()
        if not 0 < number <= len(_NAMES):
            raise ValueError(f"there is no element type {number}")
        return _NAMES[number - 1]

    def _code(self, file: bytes) -> Code:
        level, at, size, text_bytes = (self._number() for _ in range(4))
        imports = tuple((self._number(), self._text()) for _ in self._counted())
        if not 0 <= at <= at + size <= len(file):
            raise ValueError("machine code that is not in the file")
        return Code(level, file[at : at + size], text_bytes, imports)

    def _shape(self) -> tuple[int, ...]:
        return tuple(self._number() for _ in self._counted())

    def _place(self) -> Place:
        return Place(Kind(self._number()), self._number(), self._number())

    def _form(self, inputs: int, outputs: int) -> Form:
        return Form(
            self._number(),
            self._number(),
            self._number(),
            tuple(self._shape() for _ in range(inputs)),
            tuple(self._shape() for _ in range(outputs)),
            tuple(self._place() for _ in self._counted()),
            tuple(self._copy() for _ in self._counted()),
        )

    def _copy(self) -> Copy:
        source, target, item = self._place(), self._place(), self._number()
        axes = tuple(
            (self._number(), self._number(), self._number()) for _ in self._counted()
        )
        return Copy(source, target, item, axes)


def _check(program: PortableProgram) -> None:
    """Check that a program stays in its memory, but for what its code does.

    Raises:
        ValueError: It does not.
    """
    for code in program.codes:
        slots = [slot for slot, _ in code.imports]
        inside = 0 <= code.text_bytes <= len(code.data)
        if (
            not inside
            or code.text_bytes % PAGE
            or any(
                slot % 8 or not code.text_bytes <= slot <= len(code.data) - 8
                for slot in slots
            )
        ):
            raise ValueError("an image of the wrong size")
    for form in program.forms:
        _Limits(program, form).check()


@dataclass(frozen=True)
class _Limits:
    """How many bytes there are behind each place of a form."""

    program: PortableProgram
    form: Form

    def check(self) -> None:
        form = self.form
        code = self.program.codes[form.code] if form.code >= 0 else None
        if code is None or not 0 <= form.entry < code.text_bytes:
            raise ValueError("an entry function that is not in the code")
        shapes = (*form.inputs, *form.outputs)
        sizes = [form.frame_bytes, *map(prod, shapes)]
        extents = [extent for shape in shapes for extent in shape]
        if max(map(len, shapes), default=0) > MAX_RANK or any(
            not 0 <= size <= _LIMIT for size in (*sizes, *extents)
        ):
            raise ValueError("a shape without memory")
        for place in form.table:
            if place.kind not in (Kind.NONE, Kind.RUNTIME):
                self._require(place, 0)
        for copy in form.copies:
            self._check_copy(copy)

    def _check_copy(self, copy: Copy) -> None:
        if copy.target.kind not in (Kind.FRAME, Kind.OUTPUT) or len(copy.axes) > 8:
            raise ValueError("a copy to what is not written")
        if copy.item not in (1, 2, 4, 8):
            raise ValueError(f"elements of {copy.item} bytes")
        extents = [axis[0] for axis in copy.axes]
        if any(not 0 <= number <= _LIMIT for axis in copy.axes for number in axis):
            raise ValueError("a copy that runs backwards")
        if 0 in extents:
            return
        for place, which in ((copy.source, 1), (copy.target, 2)):
            reach = sum((axis[0] - 1) * axis[which] for axis in copy.axes)
            self._require(place, reach + copy.item)

    def _require(self, place: Place, count: int) -> None:
        ports, shapes = self.program.inputs, self.form.inputs
        match place.kind:
            case Kind.FRAME:
                size = self.form.frame_bytes
            case Kind.DATA:
                size = len(self.program.data)
            case Kind.INPUT | Kind.OUTPUT:
                if place.kind is Kind.OUTPUT:
                    ports, shapes = self.program.outputs, self.form.outputs
                if not 0 <= place.index < len(ports):
                    raise ValueError(f"there is no tensor {place.index}")
                item = DTYPES[ports[place.index].dtype]
                size = item * prod(shapes[place.index])
            case _:
                raise ValueError("a place without memory")
        if not 0 <= place.offset <= size - count:
            raise ValueError("a place outside of its memory")
