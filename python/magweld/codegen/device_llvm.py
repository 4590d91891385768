"""Owns what both GPU code generators need of llvmlite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import llvmlite.binding as llvm

from magweld.diagnostics import MagweldError, UnsupportedError


class DeviceCodegenError(MagweldError):
    """LLVM or a tool refuses code for a GPU."""


@dataclass(frozen=True)
class DeviceCode:
    """What was generated for one GPU module.

    Attributes:
        emit_assembly: Makes PTX, or the listing of an AMD object.
        binary: cubin or linked code object; None if the tool for it is missing.
        missing: Why there is no binary, "" if there is one.
    """

    emit_assembly: Callable[[], str]
    binary: bytes | None
    missing: str

    @property
    def assembly(self) -> str:
        """PTX, or the listing of an AMD object, which takes as long as the object."""
        return self.emit_assembly()


@dataclass(frozen=True)
class DeviceMachine:
    """A processor as LLVM describes it.

    Attributes:
        triple: Target triple.
        chip: Name of the processor.
        features: Feature string; "" for what the processor implies.
    """

    triple: str
    chip: str
    features: str = ""

    def create(self) -> llvm.TargetMachine:
        """Return a new target machine."""
        # Both are idempotent and take microseconds when done before.
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.chip, features=self.features, opt=3
        )


def optimize(
    llvm_ir: str, machine: DeviceMachine
) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    """Parse LLVM IR text and run LLVM's O3 pipeline for a processor.

    Returns:
        The module and the target machine to emit it with.

    Raises:
        DeviceCodegenError: The text is no valid LLVM IR.
        UnsupportedError: `device-function`.
    """
    target_machine = machine.create()
    try:
        module = llvm.parse_assembly(llvm_ir)
        module.triple = machine.triple
        module.data_layout = str(target_machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise DeviceCodegenError(f"LLVM does not take the code: {error}") from error
    _check_functions(module)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    builder = llvm.create_pass_builder(target_machine, options)
    builder.getModulePassManager().run(module, builder)
    return module, target_machine


def _check_functions(module: llvm.ModuleRef) -> None:
    """Refuse calls into libraries, which would only fail when the code is loaded."""
    missing = [
        function.name
        for function in module.functions
        if function.is_declaration and not function.name.startswith("llvm.")
    ]
    if missing:
        raise UnsupportedError(
            "device-function",
            f"the code calls {', '.join(missing)}, which no GPU module defines",
            hint="give the operation an expansion, or let a library compute it",
        )
