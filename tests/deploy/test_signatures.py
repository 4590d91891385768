"""Signatures over artifact files: made, checked, refused, and checked by openssl."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import magweld
from magweld.aot.errors import ArtifactError
from magweld.deploy.portable_artifact import PortableArtifact
from magweld.deploy.signatures import sign

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")

Keys = tuple[Path, Path]


def key_pair(folder: Path, name: str) -> Keys:
    key = ed25519.Ed25519PrivateKey.generate()
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private, public = folder / f"{name}.pem", folder / f"{name}-public.pem"
    content = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    private.write_bytes(content)
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(key.public_key().public_bytes(pem, kind))
    return private, public


@pytest.fixture
def signed(path: Path, tmp_path: Path) -> tuple[Path, Keys]:
    copy = tmp_path / "model.mwp"
    copy.write_bytes(path.read_bytes())
    keys = key_pair(tmp_path, "ours")
    assert sign(copy, keys[0]) == tmp_path / "model.mwp.sig"
    return copy, keys


def test_a_signed_file_loads(
    signed: tuple[Path, Keys], artifact: PortableArtifact
) -> None:
    copy, (_, public) = signed
    loaded = magweld.load(copy, public_key=public)
    assert isinstance(loaded, PortableArtifact)
    assert loaded.program.structure == artifact.program.structure


def test_what_torch_runs_is_signed_as_well(tmp_path: Path) -> None:
    model, x = nn.Linear(3, 2).requires_grad_(False), torch.randn(4, 3)
    magweld.compile(model, (x,)).save(tmp_path / "model.mw")
    private, public = key_pair(tmp_path, "ours")
    sign(tmp_path / "model.mw", private)
    loaded = magweld.load(tmp_path / "model.mw", public_key=public)
    np.testing.assert_allclose(loaded(x), model(x), rtol=1e-5, atol=1e-6)
    (tmp_path / "model.mw.sig").write_bytes(bytes(64))
    with pytest.raises(ArtifactError, match="artifact-signature"):
        magweld.load(tmp_path / "model.mw", public_key=public)


def test_openssl_reads_the_signature(signed: tuple[Path, Keys]) -> None:
    copy, (_, public) = signed
    if not shutil.which("openssl"):
        pytest.skip("no openssl")
    command = ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", public]
    command += ["-sigfile", f"{copy}.sig", "-in", copy]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_what_is_not_signed_so_is_refused(
    signed: tuple[Path, Keys], tmp_path: Path
) -> None:
    copy, (private, public) = signed
    _, other = key_pair(tmp_path, "other")
    beside, content = Path(f"{copy}.sig"), copy.read_bytes()
    intact = beside.read_bytes()

    def refused(key: Path, identity: str, words: str) -> None:
        with pytest.raises(ArtifactError, match=words) as raised:
            magweld.load(copy, public_key=key)
        assert raised.value.id == identity

    refused(other, "artifact-signature", "by the key")
    refused(private, "signature-key", "no public Ed25519 key")
    with pytest.raises(ArtifactError, match="no private Ed25519 key"):
        sign(copy, public)
    for wrong in (b"", intact[:-1], intact + b"\0", bytes(64)):
        beside.write_bytes(wrong)
        refused(public, "artifact-signature", "no signature of")
    beside.write_bytes(intact)
    copy.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    refused(public, "artifact-signature", "no signature of")
    copy.write_bytes(content)
    assert magweld.load(copy, public_key=public)
    beside.unlink()
    refused(public, "artifact-unsigned", "has no signature")


def test_without_the_library_the_error_says_what_to_install(
    signed: tuple[Path, Keys], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, (_, public) = signed
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ArtifactError, match=r"magweld\[sign\]") as raised:
        magweld.load(copy, public_key=public)
    assert raised.value.id == "signature-library"
    assert magweld.load(copy)
