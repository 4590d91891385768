"""One artifact, the C runtime and keys, each made once; signed copies."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from torch import nn

import magweld
from magweld.aot.files import archive_of, write_whole
from magweld.deploy.portable_artifact import PortableArtifact
from magweld.deploy.signatures import sign

# Test modules of a folder cannot import each other otherwise under importlib mode.
sys.path.insert(0, str(Path(__file__).parent))
import c_runtime
from kinds import Kinds, inputs
from signing import Keys, Signed, key_files

LIBCRYPTO = ("libcrypto.so.4", "libcrypto.so.3", "libcrypto.so.1.1")


@pytest.fixture(scope="session")
def model() -> nn.Module:
    return Kinds().eval().requires_grad_(False)


@pytest.fixture(scope="session")
def artifact(model: nn.Module) -> PortableArtifact:
    calls = []
    for batch in (2, 3):
        (ids, y), others = inputs(batch)
        calls.append({"ids": ids, "y": y, **others})
    return magweld.compile_portable(model, *calls)


@pytest.fixture(scope="session")
def path(artifact: PortableArtifact, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("portable") / "kinds.mwp"
    artifact.save(path)
    return path


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    output = tmp_path_factory.mktemp("runtime") / "libmagweld.so"
    source = c_runtime.SOURCES / "magweld.c"
    c_runtime.build(output, "-O2", "-shared", "-fPIC", source)
    return ctypes.CDLL(str(output))


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    key = ed25519.Ed25519PrivateKey.generate()
    return key_files(tmp_path_factory.mktemp("ours"), "ours", key)


@pytest.fixture(scope="session")
def others(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    key = ed25519.Ed25519PrivateKey.generate()
    return key_files(tmp_path_factory.mktemp("others"), "others", key)


@pytest.fixture
def signed(path: Path, ours: Keys, tmp_path: Path) -> Signed:
    one = Signed(tmp_path / "model.mwp", ours)
    one.path.write_bytes(path.read_bytes())
    assert sign(one.path, ours.private) == one.signature
    return one


@pytest.fixture
def archive(ours: Keys, tmp_path: Path) -> Signed:
    """An artifact of the other kind: what torch would run, without a program."""
    one = Signed(tmp_path / "model.mw", ours)
    write_whole(one.path, archive_of({"target": "cpu"}, {"program.bin": bytes(200)}))
    sign(one.path, ours.private)
    return one


@pytest.fixture(scope="session")
def crypto(library: ctypes.CDLL) -> ctypes.CDLL:
    """The C runtime where there is what checks signatures."""
    for name in LIBCRYPTO:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return library
    pytest.skip("no libcrypto of OpenSSL: " + ", ".join(LIBCRYPTO))
