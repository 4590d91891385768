"""One artifact and the C runtime, each made once."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest
from torch import nn

import magweld
from magweld.deploy.portable_artifact import PortableArtifact

# Test modules of a folder cannot import each other otherwise under importlib mode.
sys.path.insert(0, str(Path(__file__).parent))
import c_runtime
from kinds import Kinds, inputs


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
