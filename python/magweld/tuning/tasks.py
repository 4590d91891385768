"""Owns what tuning asks of compile workers: units, their alternatives, programs.

Like the compiler these functions never import torch. Their options are the text of
`CompileOptions`; for a GPU the name of its target comes before, on a line of its own.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from magweld.artifact import Program
from magweld.bindings import ir
from magweld.compiler import compile_tiled, lower_to_tiles
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.device_compiler import compile_on_device, device_options
from magweld.diagnostics import MagweldError
from magweld.dialects.tile_graph import is_tile_graph
from magweld.passes.graph.lower_torch_to_linalg import UnloweredError
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.ir.utils import functions_of
from magweld.passes.tile.alternatives import alternatives
from magweld.passes.tile.apply_plans import PLAN
from magweld.passes.tile.units import Unit, mark_units, units_of
from magweld.runtime.container import decode_parts, decode_request, encode_program
from magweld.targets import parse_target


@dataclass(frozen=True)
class _Task:
    """What the compilation of a task may decide, and what it is for.

    Attributes:
        options: What it may decide.
        target: Name of the target of a GPU, "" for the host.
    """

    options: CompileOptions
    target: str

    @classmethod
    def parse(cls, text: str) -> _Task:
        """Read what comes with a task."""
        target, _, options = text.rpartition("\n")
        return cls(CompileOptions.parse(options), target)

    def lower(self, module: Any) -> None:
        """Lower a module to tile graphs, nothing decided."""
        if not self.target:
            lower_to_tiles(module, self.options, Phase.TILE_GRAPH)
            return
        target = parse_target(self.target)
        options = device_options(target, self.options)
        lower_to_tiles(module, options, Phase.TILE_GRAPH, target=target)

    def compile(self, module: Any) -> Program:
        """Compile tile graphs to a program.

        Raises:
            MagweldError: They cannot be compiled, or what they compute has no code.
        """
        if not self.target:
            return compile_tiled(module, self.options, Phase.TILE_GRAPH)
        program = compile_on_device(module, self.target, self.options, Phase.TILE_GRAPH)
        if program.unlowered:
            raise MagweldError(f"no code: {program.report['refused']}")
        return program


def find_units(payload: bytes) -> bytes:
    """Return the tile graph of a request as text, and the units of it.

    The answer is JSON: `graph` and `units`, each with `structure` and predicted
    `seconds`; or `unlowered`, the nodes that have no lowering.

    Raises:
        MagweldError: The module cannot be lowered.
    """
    options_text, text = decode_request(payload)
    task = _Task.parse(options_text)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        try:
            task.lower(module)
        except UnloweredError as error:
            if not error.nodes:
                raise
            return json.dumps({"unlowered": sorted(error.nodes)}).encode()
        found: list[Unit] = []
        for function in functions_of(module.operation):
            if is_tile_graph(function):
                units = units_of(function, task.options.fusion)
                mark_units(function, units)
                found += units
        graph = module.operation.get_asm(enable_debug_info=True)
    answer = [{"structure": u.structure, "seconds": u.seconds} for u in found]
    return json.dumps({"graph": graph, "units": answer}).encode()


def find_alternatives(payload: bytes) -> bytes:
    """Return the alternatives of a unit as JSON.

    The payload's parts are compile options, most alternatives and the unit's text.
    """
    options_text, count, text = (part.decode() for part in decode_parts(payload))
    options = _Task.parse(options_text).options
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        found = alternatives(module, options.library, options.fusion, int(count))
    return json.dumps([asdict(a) for a in found]).encode()


def compile_planned(payload: bytes) -> bytes:
    """Compile a tile graph under plans to an encoded program.

    The payload's parts are compile options, the graph's text and the text of each plan.

    Raises:
        MagweldError: The graph cannot be compiled.
    """
    options_text, text, *plans = (part.decode() for part in decode_parts(payload))
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        for number, plan in enumerate(plans):
            _add_plan(module, plan, number)
        return encode_program(_Task.parse(options_text).compile(module))


def compile_alternative(payload: bytes) -> bytes:
    """Compile a unit as one of its alternatives says to an encoded program.

    Raises:
        MagweldError: It cannot be compiled.
    """
    options_text, text = decode_request(payload)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        for function in functions_of(module.operation):
            del function.attributes[PLAN]
        return encode_program(_Task.parse(options_text).compile(module))


def _add_plan(module: Any, text: str, number: int) -> None:
    """Move the functions of a plan's module into another one."""
    for function in functions_of(ir.Module.parse(text).operation):
        clone = function.operation.clone()
        clone.attributes["sym_name"] = ir.StringAttr.get(f"plan_{number}")
        clone.attributes["sym_visibility"] = ir.StringAttr.get("private")
        module.body.append(clone)
