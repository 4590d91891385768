"""Signatures over artifact files: made, checked in Python and in C, and refused."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import c_runtime
import numpy as np
import pytest
import torch
from kinds import inputs
from signing import STATUS, Keys, Signed, c_refuses, flipped, python_refuses

import magweld
from magweld.aot.errors import ArtifactError
from magweld.aot.files import archive_of, write_whole
from magweld.deploy.portable_artifact import PortableArtifact
from magweld.deploy.portable_file import decode, seal
from magweld.deploy.signatures import PublicKey, sign


def load_bytes(
    library: ctypes.CDLL, content: bytes, signature: bytes, key: bytes | None
) -> int:
    """Load from memory in C and return the status."""
    model, error = ctypes.c_void_p(), c_runtime.Error()
    sizes = [ctypes.c_size_t(len(part)) for part in (content, signature)]
    status = library.magweld_load_bytes_verified(
        *(content, sizes[0], signature, sizes[1], key, None),
        *(ctypes.byref(model), ctypes.byref(error)),
    )
    assert status == error.status
    assert bool(model) == (status == 0)
    assert bool(error.text) == (status != 0)
    if status == 0:
        library.magweld_free(model)
    return int(status)


def test_a_signed_file_loads(signed: Signed, artifact: PortableArtifact) -> None:
    for key in (signed.keys.public, None):
        loaded = magweld.load(signed.path, public_key=key)
        assert isinstance(loaded, PortableArtifact)
        assert loaded.program.structure == artifact.program.structure


def test_a_signed_file_loads_in_c(
    crypto: ctypes.CDLL, signed: Signed, artifact: PortableArtifact
) -> None:
    (ids, y), others = inputs(2)
    given = [ids.numpy(), y.numpy(), others["mask"].numpy()]
    expected = artifact.run(given)
    for key in (signed.keys.public, None):
        model = c_runtime.Model(crypto, signed.path, public_key=key)
        for one, other in zip(model.run(given), expected, strict=True):
            np.testing.assert_array_equal(one, other)
        model.close()


def test_signing_changes_no_artifact(path: Path, signed: Signed) -> None:
    assert signed.path.read_bytes() == path.read_bytes()
    assert len(signed.signature.read_bytes()) == 64


def test_what_torch_runs_is_signed_as_well(ours: Keys, tmp_path: Path) -> None:
    model, x = torch.nn.Linear(3, 2).requires_grad_(False), torch.randn(4, 3)
    path = tmp_path / "model.mw"
    magweld.compile(model, (x,)).save(path)
    sign(path, ours.private)
    loaded = magweld.load(path, public_key=ours.public)
    np.testing.assert_allclose(loaded(x), model(x), rtol=1e-5, atol=1e-6)
    Path(f"{path}.sig").write_bytes(bytes(64))
    assert python_refuses(path, ours.public) == "artifact-signature"


def removed(one: Signed, others: Keys) -> str:
    one.signature.unlink()
    return "artifact-unsigned"


def signature(change: Callable[[bytes], bytes]) -> Callable[[Signed, Keys], str]:
    def changed(one: Signed, others: Keys) -> str:
        one.signature.write_bytes(change(one.signature.read_bytes()))
        return "artifact-signature"

    return changed


def content(change: Callable[[bytes], bytes]) -> Callable[[Signed, Keys], str]:
    def changed(one: Signed, others: Keys) -> str:
        one.path.write_bytes(change(one.path.read_bytes()))
        return "artifact-signature"

    return changed


def of_another_artifact(one: Signed, others: Keys) -> str:
    other = one.path.with_name("other.mw")
    write_whole(other, archive_of({}, {}))
    sign(other, one.keys.private).replace(one.signature)
    return "artifact-signature"


def by_another_key(one: Signed, others: Keys) -> str:
    sign(one.path, others.private)
    return "artifact-signature"


CHANGES = {
    "removed": removed,
    "empty": signature(lambda s: b""),
    "short": signature(lambda s: s[:-1]),
    "long": signature(lambda s: s + b"\0"),
    "twice": signature(lambda s: s + s),
    "zeros": signature(lambda s: bytes(64)),
    "first-byte": signature(lambda s: flipped(s, 0)),
    "last-byte": signature(lambda s: flipped(s, 63)),
    "of-another-artifact": of_another_artifact,
    "by-another-key": by_another_key,
    "truncated": content(lambda c: c[:-1]),
    "half": content(lambda c: c[: len(c) // 2]),
    "nothing": content(lambda c: b""),
    "longer": content(lambda c: c + b"\0"),
}


every_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())


@every_change
def test_what_is_not_signed_so_is_refused(
    signed: Signed, others: Keys, change: Callable[[Signed, Keys], str]
) -> None:
    expected = change(signed, others)
    assert python_refuses(signed.path, signed.keys.public) == expected


@every_change
def test_what_is_not_signed_so_is_refused_in_c(
    crypto: ctypes.CDLL,
    signed: Signed,
    others: Keys,
    change: Callable[[Signed, Keys], str],
) -> None:
    expected, key = change(signed, others), signed.keys.public
    status, text = c_refuses(crypto, signed.path, key)
    assert status == STATUS[expected]
    assert "signature" in text
    if signed.signature.exists():
        given = signed.path.read_bytes(), signed.signature.read_bytes()
        wanted = expected if given[1] else "artifact-unsigned"
        assert load_bytes(crypto, *given, key.read_bytes()) == STATUS[wanted]


def changed_contents(intact: bytes) -> Iterator[bytes]:
    """Yield a portable artifact with one bit changed, in each of its sections."""
    (described,) = struct.unpack_from("<Q", intact, 24)
    end = 64 + described
    # All of the header; some of the description, of constants, and of code behind it.
    places = [
        *range(64),
        *range(64, end, described // 30),
        *range(end, len(intact), (len(intact) - end) // 40),
        *(intact.index(code.data) for code in decode(intact).codes),
        len(intact) - 1,
    ]
    for at in places:
        changed = flipped(intact, at)
        yield changed
        if at >= 64:  # with a digest that fits it, as well
            yield seal(changed[64:], described)


def test_no_bit_can_be_changed(signed: Signed) -> None:
    public = PublicKey(signed.keys.public)
    for changed in changed_contents(public.read(signed.path)):
        signed.path.write_bytes(changed)
        with pytest.raises(ArtifactError, match="artifact-signature"):
            public.read(signed.path)


def test_no_bit_can_be_changed_in_c(crypto: ctypes.CDLL, signed: Signed) -> None:
    intact, signature = signed.path.read_bytes(), signed.signature.read_bytes()
    key = signed.keys.public.read_bytes()
    assert load_bytes(crypto, intact, signature, key) == 0
    for changed in changed_contents(intact):
        assert load_bytes(crypto, changed, signature, key) == 11


def test_no_bit_of_an_archive_can_be_changed(archive: Signed) -> None:
    intact, public = archive.path.read_bytes(), PublicKey(archive.keys.public)
    assert public.read(archive.path) == intact
    # Some of each of its headers, members and directories.
    for at in (*range(0, len(intact), 7), len(intact) - 1):
        archive.path.write_bytes(flipped(intact, at))
        with pytest.raises(ArtifactError, match="artifact-signature"):
            public.read(archive.path)


def test_what_is_no_artifact_is_not_signed(
    signed: Signed, archive: Signed, tmp_path: Path
) -> None:
    for one in (signed, archive):
        one.signature.unlink()
        one.path.write_bytes(flipped(one.path.read_bytes(), 100))
        with pytest.raises(ArtifactError, match="artifact-damaged"):
            sign(one.path, one.keys.private)
        assert not one.signature.exists()


def test_null_pointers(crypto: ctypes.CDLL, signed: Signed) -> None:
    content, signature = signed.path.read_bytes(), signed.signature.read_bytes()
    assert load_bytes(crypto, content, signature, None) == 1
    assert load_bytes(crypto, content, signature, b"") == 12
    error = c_runtime.Error()
    for given in (
        (None, b"key", None, ctypes.byref(ctypes.c_void_p())),
        (b"path", None, None, ctypes.byref(ctypes.c_void_p())),
        (b"path", b"key", None, None),
    ):
        assert crypto.magweld_load_verified(*given, ctypes.byref(error)) == 1
