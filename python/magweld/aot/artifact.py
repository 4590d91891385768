"""Owns the artifact of a program: saved, loaded and called."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from magweld.aot.call_plan import CallPlan
from magweld.aot.errors import ArtifactError
from magweld.aot.files import archive_of, read_archive, write_whole
from magweld.aot.held_tensors import held_copy, memory_of, of_memory
from magweld.aot.host_check import host_description, require_host
from magweld.aot.signature import Signature
from magweld.aot.template import (
    Template,
    Tensors,
    template_from_json,
    template_to_json,
)
from magweld.artifact import HOST_TARGET, ExternalStep, Program
from magweld.runtime.admission import Likeness
from magweld.runtime.container import decode_program, encode_program
from magweld.runtime.errors import InputMismatchError
from magweld.runtime.gpu.driver import DeviceError
from magweld.runtime.gpu.machine import machine_for
from magweld.runtime.layout import Signature as TensorForm
from magweld.runtime.machine import HOST, Machine
from magweld.runtime.program import LoadedProgram
from magweld.runtime.sharing import shares_memory
from magweld.runtime.validation import check_program
from magweld.short_repr import short_repr

_PROGRAM = "program.bin"
_STATE = "state.safetensors"


@dataclass(frozen=True)
class Artifact:
    """A compiled program with its parameters; call it as the model was called.

    Gradients do not flow through it. Tensors that the model updates in place are
    updated here, in `state`. Code for a GPU that is not there can be saved, not called.

    Attributes:
        program: The compiled function.
        signature: The inputs it takes.
        plan: What happens around the compiled function.
        template: How the result is put together.
        state: Parameters and other tensors of the model, by the expression that
            reached them.
        machine: Where it runs, and its state is.
        unusable: Why it cannot run here, if there is no such machine.
    """

    __repr__ = short_repr

    program: Program
    signature: Signature
    plan: CallPlan
    template: Template
    state: dict[str, Tensor] = field(repr=False)
    machine: Machine | None = field(default=HOST, repr=False, compare=False)
    unusable: str = ""

    @property
    def target(self) -> str:
        """What the code is for."""
        return self.program.target

    def to(self, device: torch.device | str) -> Artifact:
        """Return the same artifact with a copy of its state on another GPU.

        Raises:
            DeviceError: The code cannot run there.
        """
        machine = machine_for(self.program.target, device)
        state = {
            name: held_copy(tensor, machine.device)
            for name, tensor in self.state.items()
        }
        return replace(self, state=state, machine=machine, unusable="")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Raises:
            InputMismatchError: Arguments of other number, shape, dtype, strides or
                device.
            ArtifactError: `artifact-device`: there is no GPU that takes the code.
            DeviceError: The GPU or its driver fails.
        """
        loaded = self._loaded
        inputs = self._inputs(args, kwargs, loaded.machine.device)
        fresh = loaded.results_are_fresh
        with torch.no_grad():
            every = self.plan.gather(inputs, self._held)
            if self.plan.epilogue.writes:
                _require_private(every)
            results = loaded(self.plan.prepare(every))
            outputs = self.plan.epilogue.finish(every, results, fresh=fresh)
            return Tensors(outputs, inputs, self._held).build(self.template)

    def _inputs(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], device: torch.device
    ) -> Sequence[Tensor]:
        """Return the tensors of a call, having checked them."""
        takes_tensors = self.signature.takes_tensors and not kwargs
        if takes_tensors and self._likeness.knows(args):
            return args
        inputs = self.signature.tensors(args, kwargs, device)
        if takes_tensors:
            self._likeness.learn(inputs)
        return inputs

    @cached_property
    def _likeness(self) -> Likeness:
        return Likeness()

    @cached_property
    def _held(self) -> tuple[Tensor, ...]:
        return tuple(self.state.values())

    @cached_property
    def _loaded(self) -> LoadedProgram:
        if self.machine is None:
            raise ArtifactError("artifact-device", self.unusable)
        run_external = partial(self.plan.run_external, self.machine.device)
        checks = self.plan.index_checks
        return LoadedProgram(self.program, run_external, self.machine, checks=checks)

    def report(self) -> dict[str, Any]:
        """Return fused groups with their predicted traffic, and what runs in torch."""
        return {**self.program.report, "externals": sorted(self.plan.externals)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact to a file, whole or not at all.

        Raises:
            OSError: It cannot be written.
        """
        write_whole(Path(path), self._content())

    def __deepcopy__(self, memo: dict[int, Any]) -> Artifact:
        """Return an artifact with a copy of the state, on the same machine."""
        return replace(self, state=copy.deepcopy(self.state, memo))

    def __copy__(self) -> Artifact:
        """Return an artifact with the same state."""
        return replace(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it as `save` writes it, with the place where it runs."""
        device = None if self.machine is None else str(self.machine.device)
        return _unpickled, (self._content(), device)

    def _content(self) -> bytes:
        """Return the content of a file of it."""
        manifest = {
            "target": self.target,
            "host": host_description() if self.target == HOST_TARGET else {},
            "signature": self.signature.to_json(),
            "plan": self.plan.to_json(),
            "template": template_to_json(self.template),
            "state": [
                [name, tuple(tensor.shape), tensor.stride()]
                for name, tensor in self.state.items()
            ],
        }
        members = {
            _PROGRAM: encode_program(replace(self.program, scheduled="")),
            _STATE: safetensors.torch.save(
                {name: memory_of(tensor).cpu() for name, tensor in self.state.items()}
            ),
        }
        return archive_of(manifest, members)


def _unpickled(content: bytes, device: str | None) -> Artifact:
    parts = read_archive(Path("a pickled artifact"), content)
    return placed(read_artifact(*parts), device)


def read_artifact(manifest: dict[str, Any], members: dict[str, bytes]) -> Artifact:
    """Rebuild an artifact from the parts of its file, without a machine to run on.

    Raises:
        ArtifactError: The parts are damaged, or the code needs another CPU.
    """
    try:
        target = manifest["target"]
        if target == HOST_TARGET:
            require_host(manifest["host"])
        tensors = safetensors.torch.load(members[_STATE])
        artifact = Artifact(
            program=decode_program(members[_PROGRAM]),
            signature=Signature.from_json(manifest["signature"]),
            plan=CallPlan.from_json(manifest["plan"]),
            template=template_from_json(manifest["template"]),
            state={
                name: of_memory(tensors[name], shape, stride)
                for name, shape, stride in manifest["state"]
            },
            machine=None,
        )
        if artifact.target != target:
            raise ValueError(f"it holds code for {artifact.target}, not for {target}")
        _rehearse(artifact)
    except ArtifactError:
        raise
    except Exception as error:
        # The parts are data from a file: reading them raises whatever it likes.
        message = f"the artifact is damaged: {type(error).__name__}: {error}"
        raise ArtifactError("artifact-damaged", message) from error
    return artifact


def _rehearse(artifact: Artifact) -> None:
    """Go through a call on tensors without data: its parts must fit each other.

    Raises:
        Exception: They do not.
    """
    layout = check_program(artifact.program)
    nowhere = torch.device("meta")
    inputs = [
        torch.empty_strided(one.shape, one.stride, dtype=one.dtype, device=nowhere)
        for _, one in artifact.signature.leaves
    ]
    held = [held_copy(tensor, nowhere) for tensor in artifact.state.values()]
    every = artifact.plan.gather(inputs, held)
    expected = [layout.signatures[i] for i in layout.inputs]
    arguments = [TensorForm(t.shape, t.dtype) for t in artifact.plan.prepare(every)]
    if arguments != expected:
        raise ValueError("the inputs are not those of the program")
    results = [
        torch.empty(
            layout.signatures[i].shape,
            dtype=layout.signatures[i].dtype,
            device=nowhere,
        )
        for i in artifact.program.results
    ]
    steps = artifact.program.steps
    nodes = {step.node for step in steps if isinstance(step, ExternalStep)}
    if nodes != set(artifact.plan.externals):
        raise ValueError("the externals are not those of the program")
    artifact.signature.arguments(inputs)
    outputs = artifact.plan.epilogue.finish(every, results)
    Tensors(outputs, inputs, held).build(artifact.template)


def placed(artifact: Artifact, device: torch.device | str | None = None) -> Artifact:
    """Return an artifact with its state where it runs.

    Args:
        artifact: An artifact whose state is nobody else's.
        device: A GPU; by default the current one, and if that does not take the code,
            the artifact cannot be called.

    Raises:
        DeviceError: The code cannot run on the device that is named.
    """
    try:
        machine = machine_for(artifact.target, device)
    except DeviceError as error:
        if device is not None:
            raise
        return replace(artifact, machine=None, unusable=str(error))
    state = {
        name: of_memory(
            memory_of(tensor).to(machine.device), tensor.shape, tensor.stride()
        )
        for name, tensor in artifact.state.items()
    }
    return replace(artifact, state=state, machine=machine)


def _require_private(tensors: Sequence[Tensor]) -> None:
    """Refuse inputs that share memory where the program writes to some."""
    if shares_memory(tensors):
        message = "two arguments share memory, and the program writes to tensors"
        raise InputMismatchError(-1, message)
