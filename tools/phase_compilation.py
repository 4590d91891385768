"""Owns --compile-to: which pipeline brings a module from its phase to another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from magweld.bindings import ir
from magweld.diagnostics import MagweldError, UnsupportedError
from magweld.passes.infrastructure.option_codecs import codec_of
from magweld.passes.infrastructure.phases import PHASES, Phase
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import located_error
from magweld.passes.phase.detection import phases_at
from magweld.targets.target import Backend, Target, parse_target
from magweld.tools.opt_options import Compilation, UsageError


@dataclass(frozen=True)
class PhaseCompilation:
    """The way from the phase of a module to that which was asked for.

    Attributes:
        asked: What was asked for.
        target: What code is made for.
        parse: Reads pipeline text.
    """

    asked: Compilation
    target: Target
    parse: Callable[[str], Pipeline]

    @classmethod
    def of(
        cls, asked: Compilation, parse: Callable[[str], Pipeline]
    ) -> PhaseCompilation:
        """Check what was asked for.

        Raises:
            UsageError: There is no such target, a phase is not on the way to it, or
                the phases are in the wrong order.
        """
        try:
            target = parse_target(asked.target)
        except UnsupportedError as error:
            raise UsageError(str(error)) from error
        made = cls(asked, target, parse)
        for phase in (asked.until, asked.after):
            if phase is not None and not made._is_on_way(phase):
                raise UsageError(made._off_way(phase))
        if asked.after is not None and asked.until.is_before(asked.after):
            raise UsageError(f"phase '{asked.until}' is before phase '{asked.after}'")
        if asked.after is Phase.OBJECT:
            raise UsageError("an object file is no module: nothing starts from it")
        return made

    @property
    def writes_object(self) -> bool:
        """Whether the result is an object file."""
        return self.asked.until is Phase.OBJECT

    def pipeline(self, module: ir.Module) -> Pipeline:
        """Return the steps for a module; those to an object end before it.

        Raises:
            MagweldError: The module is behind the phase, or on the way to another
                target; or an option is wrong.
        """
        after = self.asked.after or self._found(module)
        until = Phase.LLVM if self.writes_object else self.asked.until
        text = codec_of(str)
        options = {"compile-from": str(after), "compile-to": str(until)}
        name = "magweld-cpu"
        if self.target.backend is not Backend.CPU:
            name = "magweld-gpu"
            options["target"] = text.encode(self.asked.target)
        options |= {key: text.encode(value) for key, value in self.asked.options}
        written = " ".join(f"{key}={value}" for key, value in options.items())
        return self.parse(f"{name}{{{written}}}")

    def _found(self, module: ir.Module) -> Phase:
        phase = phases_at(module.operation)[0]
        if not self._is_on_way(phase):
            raise located_error(module.operation, f"at {self._off_way(phase)}")
        if self.asked.until.is_before(phase):
            message = f"at phase '{phase}' is behind phase '{self.asked.until}'"
            raise located_error(module.operation, message)
        return phase

    def _is_on_way(self, phase: Phase) -> bool:
        return phase in PHASES[self.target.backend]

    def _off_way(self, phase: Phase) -> str:
        others = ", ".join(kind for kind, way in PHASES.items() if phase in way)
        own = ", ".join(PHASES[self.target.backend])
        return (
            f"phase '{phase}' is not on the way to target '{self.target}' but to "
            f"{others}; phases of this target: {own}"
        )


def object_of(module: ir.Module) -> bytes:
    """Return the kernels of a module in the LLVM dialect as an object file.

    Raises:
        MagweldError: LLVM does not take the code, or there is none.
    """
    # Only here, as LLVM takes a while to load.
    from magweld.codegen.kernels import compile_kernels
    from magweld.codegen.llvm_text import kernel_signatures

    if not kernel_signatures(module):
        raise MagweldError("the module has no kernel: there is no object to write")
    return compile_kernels(module, [])


def list_phases() -> str:
    """Return the phases of each kind of target, for a terminal."""
    lines = ["phases of a module, in their order:"]
    for backend, way in PHASES.items():
        lines.append(f"  {backend}: {', '.join(way)}")
    lines.append("")
    lines += [f"  {phase:<12} {phase.description}" for phase in Phase]
    return "\n".join(lines) + "\n"
