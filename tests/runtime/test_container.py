from __future__ import annotations

from collections.abc import Callable

import pytest

from magweld.artifact import (
    Program,
)
from magweld.runtime.container import (
    ContainerError,
    decode_program,
    decode_request,
    encode_program,
    encode_request,
)
from magweld.runtime.fingerprint import compiler_identity, program_key


def test_program_survives_the_container(make_program: Callable[..., Program]) -> None:
    program = make_program()
    assert decode_program(encode_program(program, b"key"), b"key") == program


def test_request_survives_its_encoding() -> None:
    assert decode_request(encode_request("options é", "text")) == ("options é", "text")
    with pytest.raises(ContainerError):
        decode_request(b"\x03")


def test_every_truncation_is_found(make_program: Callable[..., Program]) -> None:
    data = encode_program(make_program())
    for length in range(len(data)):
        with pytest.raises(ContainerError):
            decode_program(data[:length])
    with pytest.raises(ContainerError):
        decode_program(data + b"\x00")


def test_every_flipped_bit_is_found(make_program: Callable[..., Program]) -> None:
    data = bytearray(encode_program(make_program()))
    for position in range(len(data)):
        bit = 1 << position % 8
        data[position] ^= bit
        with pytest.raises(ContainerError):
            decode_program(bytes(data))
        data[position] ^= bit
    assert decode_program(bytes(data)) == make_program()


def test_key_depends_on_all_that_decides() -> None:
    keys = {
        program_key(identity, options, text)
        for identity in ("a", "ab")
        for options in ("", "b", "bc")
        for text in ("c", "bc", "")
    }
    assert len(keys) == 2 * 3 * 3
    assert program_key("a", "b", "c") == program_key("a", "b", "c")


def test_identity_names_the_toolchain_and_the_host() -> None:
    identity = compiler_identity()
    for part in ("torch-mlir 2", "llvmlite 0", "cpu ", "features ", "device "):
        assert part in identity
    assert identity == compiler_identity()
