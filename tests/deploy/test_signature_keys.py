"""Keys and libraries of signatures: which there are, and what is refused without."""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import c_runtime
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, x25519
from signing import Keys, Signed, c_refuses, key_files, python_refuses

import magweld
from magweld.aot.errors import ArtifactError
from magweld.deploy.signatures import PrivateKey, PublicKey, sign

OTHER_KINDS: dict[str, Callable[[], Any]] = {
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ed448": ed448.Ed448PrivateKey.generate,
    "x25519": x25519.X25519PrivateKey.generate,
}


NO_KEYS: dict[str, Callable[[Keys], bytes]] = {
    "nothing": lambda keys: b"",
    "text": lambda keys: b"no key",
    "private": lambda keys: keys.private.read_bytes(),
    # The first block counts.
    "both": lambda keys: keys.private.read_bytes() + keys.public.read_bytes(),
    "truncated": lambda keys: keys.public.read_bytes()[:60],
    # Three bytes less than a key has.
    "short": lambda keys: re.sub(rb".{4}\n--", b"\n--", keys.public.read_bytes()),
    "renamed": lambda keys: keys.public.read_bytes().replace(b"PUBLIC", b"OTHER"),
    "binary": lambda keys: bytes(range(256)),
}


@pytest.fixture(params=[*OTHER_KINDS, *NO_KEYS])
def wrong_key(request: pytest.FixtureRequest, ours: Keys, tmp_path: Path) -> Path:
    """A file that holds no public key, or one of another kind."""
    if request.param in OTHER_KINDS:
        key = OTHER_KINDS[request.param]()
        return key_files(tmp_path, request.param, key).public
    path = tmp_path / "wrong.pem"
    path.write_bytes(NO_KEYS[request.param](ours))
    return path


def test_other_keys_are_refused(signed: Signed, wrong_key: Path) -> None:
    assert python_refuses(signed.path, wrong_key) == "signature-key"


def test_other_keys_are_refused_in_c(
    crypto: ctypes.CDLL, signed: Signed, wrong_key: Path
) -> None:
    status, text = c_refuses(crypto, signed.path, wrong_key)
    assert (status, text) == (12, "the key is no public Ed25519 key as PEM")


def test_a_key_that_is_not_there(
    crypto: ctypes.CDLL, signed: Signed, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError):
        magweld.load(signed.path, public_key=tmp_path / "none.pem")
    status, text = c_refuses(crypto, signed.path, tmp_path / "none.pem")
    assert (status, "No such file" in text) == (2, True)


def test_text_around_a_key_and_other_ends_of_lines(
    crypto: ctypes.CDLL, signed: Signed, tmp_path: Path
) -> None:
    key, intact = tmp_path / "key.pem", signed.keys.public.read_bytes()
    key.write_bytes(b"a key\n" + intact.replace(b"\n", b"\r\n") + b"more\n")
    assert magweld.load(signed.path, public_key=key)
    c_runtime.Model(crypto, signed.path, public_key=key).close()


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_keys_of_other_kinds_sign_nothing(
    signed: Signed, tmp_path: Path, kind: str
) -> None:
    keys = key_files(tmp_path, kind, OTHER_KINDS[kind]())
    with pytest.raises(ArtifactError, match="no private Ed25519 key") as caught:
        sign(signed.path, keys.private)
    assert caught.value.id == "signature-key"


def test_private_keys_that_sign_nothing(signed: Signed, tmp_path: Path) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"password"),
        )
    )
    before = signed.signature.read_bytes()
    for path in (signed.keys.public, locked, signed.path):
        with pytest.raises(ArtifactError, match="no private Ed25519 key") as caught:
            sign(signed.path, path)
        assert caught.value.id == "signature-key"
    assert signed.signature.read_bytes() == before


def test_openssl_makes_and_reads_the_same(
    crypto: ctypes.CDLL, signed: Signed, tmp_path: Path
) -> None:
    if not shutil.which("openssl"):
        pytest.skip("no openssl")

    def openssl(*words: object) -> bytes:
        command = ["openssl", *map(str, words)]
        return subprocess.run(command, capture_output=True, check=True).stdout

    one, keys = signed, signed.keys
    name, at = one.path, one.signature
    openssl(
        *("pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", keys.public),
        *("-sigfile", at, "-in", name),
    )
    keys = Keys(tmp_path / "key.pem", tmp_path / "public.pem")
    openssl("genpkey", "-algorithm", "ed25519", "-out", keys.private)
    openssl("pkey", "-in", keys.private, "-pubout", "-out", keys.public)
    openssl(
        *("pkeyutl", "-sign", "-rawin", "-inkey", keys.private),
        *("-in", name, "-out", at),
    )
    assert magweld.load(name, public_key=keys.public)
    c_runtime.Model(crypto, name, public_key=keys.public).close()
    made = at.read_bytes()
    sign(name, keys.private)
    assert at.read_bytes() == made
    der = openssl("pkey", "-pubin", "-in", keys.public, "-outform", "DER")
    fingerprint = hashlib.sha256(der).hexdigest()
    assert PublicKey(keys.public).fingerprint == fingerprint
    assert PrivateKey(keys.private).fingerprint == fingerprint


def test_without_the_package_the_error_says_what_to_install(
    signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for call in (
        lambda: magweld.load(signed.path, public_key=signed.keys.public),
        lambda: sign(signed.path, signed.keys.private),
    ):
        with pytest.raises(ArtifactError, match=r"magweld\[sign\]") as caught:
            call()
        assert caught.value.id == "signature-library"
    assert magweld.load(signed.path)


def test_what_cannot_be_checked_is_refused_in_c(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, stub = tmp_path / "runtime.so", tmp_path / "libcrypto.so"
    tried = f'"libcrypto-that-is-not-there.so.1","libm.so.6","{stub}"'
    shared = ("-shared", "-fPIC")
    source = c_runtime.SOURCES / "magweld.c"
    c_runtime.build(runtime, *shared, f"-DMAGWELD_LIBCRYPTO={tried}", source)
    library, key = ctypes.CDLL(str(runtime)), signed.keys.public
    status, text = c_refuses(library, signed.path, key)
    assert (status, "no libcrypto" in text) == (13, True)
    # Files without signatures load as ever.
    c_runtime.Model(library, signed.path).close()

    c_runtime.build(stub, *shared, Path(__file__).with_name("refusing_libcrypto.c"))

    def answer(**values: int) -> None:
        for name in ("KEY", "CONTEXT", "BEGIN", "VERIFY"):
            monkeypatch.setenv(name, str(values.get(name, 1)))

    for name in ("KEY", "CONTEXT", "BEGIN"):
        answer(**{name: 0})
        assert c_refuses(library, signed.path, key)[0] == 13
    for wrong in (-1, -2, 2, 256):
        answer(VERIFY=wrong)
        assert c_refuses(library, signed.path, key)[0] == 13
    answer(VERIFY=0)
    assert c_refuses(library, signed.path, key)[0] == 11
    answer()
    c_runtime.Model(library, signed.path, public_key=key).close()
