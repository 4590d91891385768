"""Owns `magweld run`: an artifact file on arrays."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from magweld.aot.artifact import Artifact
from magweld.aot.signature import TensorInput
from magweld.deploy.portable_artifact import PortableArtifact
from magweld.loading import load
from magweld.tools.cli.program import CommandLineError, random_tensor
from magweld.tools.output import write_data

_RANDOM = "random"


def run(options: argparse.Namespace) -> None:
    """Call an artifact and write the tensors of its result as arrays."""
    artifact = load(options.file, public_key=options.key)
    if isinstance(artifact, PortableArtifact):
        arrays = _run_portable(artifact, options.inputs)
    else:
        arrays = _run(artifact, options)
    buffer = io.BytesIO()
    np.savez(buffer, *arrays)
    write_data(buffer.getvalue(), options.output)
    for number, array in enumerate(arrays):
        extents = "x".join(map(str, array.shape))
        print(f"arr_{number}: {extents or 'scalar'} {array.dtype}")


def _run(artifact: Artifact, options: argparse.Namespace) -> list[Any]:
    if artifact.machine is None:
        raise CommandLineError(f"'{options.file}': {artifact.unusable}")
    device = artifact.machine.device
    tensors = _inputs(artifact, options.inputs)
    args, keywords = artifact.signature.arguments(x.to(device) for x in tensors)
    result = artifact(*args, **keywords)
    return [_array(x) for x in pytree.tree_leaves(result) if isinstance(x, Tensor)]


def _run_portable(artifact: PortableArtifact, source: str) -> list[Any]:
    """Run a portable artifact on the shapes that it was made for first."""
    program = artifact.program
    if source == _RANDOM:
        generator = torch.Generator().manual_seed(0)
        pairs = zip(program.forms[0].inputs, program.inputs, strict=True)
        tensors = [
            random_tensor(s, getattr(torch, p.dtype), generator) for s, p in pairs
        ]
    else:
        tensors = _read(Path(source))
    return artifact.run(
        [
            # numpy has no bfloat16: its bits are passed.
            (x.view(torch.uint16) if x.dtype is torch.bfloat16 else x).numpy()
            for x in tensors
        ]
    )


def _inputs(artifact: Artifact, source: str) -> list[Tensor]:
    expected = [one for _, one in artifact.signature.leaves]
    if source == _RANDOM:
        generator = torch.Generator().manual_seed(0)
        tensors = [random_tensor(x.shape, x.dtype, generator) for x in expected]
    else:
        tensors = _read(Path(source))
    if len(tensors) != len(expected):
        raise CommandLineError(f"{len(tensors)} arrays, expected {len(expected)}")
    pairs = zip(tensors, expected, strict=True)
    return [_arranged(tensor, entry) for tensor, entry in pairs]


def _arranged(tensor: Tensor, entry: TensorInput) -> Tensor:
    """Give a tensor of the right shape the strides that the artifact expects."""
    if tuple(tensor.shape) != entry.shape:
        return tensor  # the call refuses it and says why
    copy = torch.empty_strided(entry.shape, entry.stride, dtype=tensor.dtype)
    return copy.copy_(tensor)


def _read(path: Path) -> list[Tensor]:
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise TypeError("it holds one array, expected what numpy.savez writes")
        with archive:
            return [torch.from_numpy(archive[name]) for name in archive.files]
    except (ValueError, TypeError, AttributeError, EOFError) as error:
        raise CommandLineError(f"cannot read '{path}': {error}") from error


def _array(tensor: Tensor) -> Any:
    # numpy has no bfloat16 and no 8-bit floats: their values are exact in f32.
    exact = tensor.detach().cpu()
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize < 4:
        exact = exact.float()
    return exact.numpy()
