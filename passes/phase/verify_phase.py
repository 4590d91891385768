"""Owns verify-phase: a module has to be at the phase that it is said to be at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from magweld.bindings import ir
from magweld.dialects.tile_graph.discardable import discardable_violations
from magweld.passes.infrastructure.base import Pass
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.ir.utils import located_error, operations_of
from magweld.passes.phase.detection import phases_at


@dataclass(frozen=True)
class VerifyPhase(Pass):
    """Make sure that a module is at a phase of the compiler.

    The named pipelines begin with it: passes find what they look for or change nothing,
    so a module at another phase would come out as it went in. The attributes with which
    passes mark ops of other dialects have to be as docs/tile_graph.md says. Nothing is
    changed.
    """

    name: ClassVar[str] = "verify-phase"

    phase: Annotated[Phase, "phase that the module is said to be at"] = Phase.LINALG

    def run(self, module: ir.Operation) -> None:
        """Compare the phase with what the module holds."""
        found = phases_at(module)
        if self.phase not in found:
            names = " or ".join(f"'{phase}'" for phase in found)
            raise located_error(
                module, f"expected to be at phase '{self.phase}', got {names}"
            )
        for op in operations_of(module, ir.OpView):
            for violation in discardable_violations(op.operation):
                raise located_error(op, violation)
