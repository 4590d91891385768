"""Native code that all programs share: who compiles it, and its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from magweld.codegen.shared_code import SharedCode
from magweld.diagnostics import MagweldError
from magweld.native_code import _FORMAT, decode_code, emit, encode_code, obtain, request
from magweld.runtime.cache import FileCache
from magweld.runtime.container import ContainerError


def refused() -> bytes:
    """Stand for a compiler that must not run."""
    raise AssertionError("compiled in this process")


def test_code_is_compiled_and_loaded_once() -> None:
    made: list[str] = []

    def emitted() -> bytes:
        made.append("emitted")
        return b"code"

    code = SharedCode("one", emitted, lambda data: [data])
    assert not code.is_loaded
    first = code.loaded()
    assert first == [b"code"]
    assert code.loaded() is first
    assert made == ["emitted"]


def test_code_that_is_loaded_is_not_compiled() -> None:
    code = SharedCode("one", refused, lambda data: [data])
    loaded = code.load(b"code")
    assert code.is_loaded
    assert code.loaded() is loaded


def test_a_worker_compiles_it_and_the_cache_keeps_it(tmp_path: Path) -> None:
    code = SharedCode("one", refused, bytes)
    ran: list[tuple[str, bytes]] = []

    def run(task: str, payload: bytes) -> bytes:
        ran.append((task, payload))
        return b"an object file"

    cache = FileCache(tmp_path / "code", 1 << 20, _FORMAT)
    for _ in range(2):
        assert obtain(code, run, cache) == b"an object file"
    assert ran == [("magweld.native_code:emit", request("one"))]
    # A file that is damaged is made again.
    (path,) = (tmp_path / "code").iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    assert obtain(code, run, cache) == b"an object file"
    assert len(ran) == 2
    assert obtain(code, run, None) == b"an object file"
    assert len(ran) == 3


def test_files_belong_to_their_keys() -> None:
    data = encode_code(b"code", b"key")
    assert decode_code(data, b"key") == b"code"
    with pytest.raises(ContainerError):
        decode_code(data, b"another")


@pytest.mark.parametrize("name", ["recurrent", "windows"])
def test_workers_know_the_code_by_name(name: str) -> None:
    assert emit(request(name)).startswith(b"\x7fELF")


def test_a_worker_of_another_environment_refuses() -> None:
    name, _ = request("recurrent").split(b"\n")
    with pytest.raises(MagweldError, match="another CPU"):
        emit(name + b"\n+none")
