"""Owns the artifact of a program for this machine: saved, loaded and called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from magweld.aot.call_plan import CallPlan
from magweld.aot.errors import ArtifactError
from magweld.aot.files import write_archive
from magweld.aot.host_check import host_description, require_host
from magweld.aot.signature import Signature
from magweld.aot.template import Template, Tensors, template_from_json
from magweld.artifact import Program
from magweld.runtime.container import ContainerError, decode_program, encode_program
from magweld.runtime.errors import InputMismatchError
from magweld.runtime.program import LoadedProgram
from magweld.runtime.sharing import shares_memory

KIND = "cpu"
_PROGRAM = "program.bin"
_STATE = "state.safetensors"


@dataclass(frozen=True)
class Artifact:
    """A compiled program with its parameters; call it as the model was called.

    Gradients do not flow through it. Tensors that the model updates in place are
    updated here, in `state`.

    Attributes:
        program: The compiled function.
        signature: The inputs it takes.
        plan: What happens around the compiled function.
        template: How the result is put together.
        state: Parameters and other tensors of the model, by the expression that
            reached them.
    """

    program: Program
    signature: Signature
    plan: CallPlan
    template: Template
    state: dict[str, Tensor]
    _loaded: LoadedProgram = field(init=False, repr=False, compare=False)
    _held: tuple[Tensor, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        loaded = LoadedProgram(self.program, self.plan.run_external)
        object.__setattr__(self, "_loaded", loaded)
        object.__setattr__(self, "_held", tuple(self.state.values()))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Raises:
            InputMismatchError: Arguments of other number, shape, dtype or strides.
        """
        inputs = self.signature.tensors(args, kwargs)
        with torch.no_grad():
            every = self.plan.gather(inputs, self._held)
            if self.plan.epilogue.writes:
                _require_private(every)
            results = self._loaded(self.plan.prepare(every))
            outputs = self.plan.epilogue.finish(every, results)
            return self.template.build(Tensors(outputs, inputs, self._held))

    def report(self) -> dict[str, Any]:
        """Return fused groups with their predicted traffic, and what runs in torch."""
        return {**self.program.report, "externals": sorted(self.plan.externals)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact to a file, whole or not at all.

        Raises:
            OSError: It cannot be written.
        """
        manifest = {
            "target": KIND,
            "host": host_description(),
            "signature": self.signature.to_json(),
            "plan": self.plan.to_json(),
            "template": self.template.to_json(),
            "state": list(self.state),
        }
        members = {
            _PROGRAM: encode_program(self.program),
            _STATE: safetensors.torch.save(self.state),
        }
        write_archive(Path(path), manifest, members)


def read_artifact(manifest: dict[str, Any], members: dict[str, bytes]) -> Artifact:
    """Rebuild an artifact from the parts of its file.

    Raises:
        ArtifactError: The parts are damaged, or the code needs another CPU.
    """
    try:
        require_host(manifest["host"])
        tensors = safetensors.torch.load(members[_STATE])
        return Artifact(
            program=decode_program(members[_PROGRAM]),
            signature=Signature.from_json(manifest["signature"]),
            plan=CallPlan.from_json(manifest["plan"]),
            template=template_from_json(manifest["template"]),
            state={name: tensors[name] for name in manifest["state"]},
        )
    except (
        ContainerError,
        safetensors.SafetensorError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        message = f"the artifact is damaged: {type(error).__name__}: {error}"
        raise ArtifactError("artifact-damaged", message) from error


def _require_private(tensors: Sequence[Tensor]) -> None:
    """Refuse inputs that share memory where the program writes to some."""
    if shares_memory(tensors):
        message = "two arguments share memory, and the program writes to tensors"
        raise InputMismatchError(-1, message)
