"""Owns what tuning asks of compile workers: units, their alternatives, programs.

Like the compiler these functions never import torch.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from magweld.bindings import ir
from magweld.compiler import compile_tiled, lower_to_tiles
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.dialects.tile_graph import is_tile_graph
from magweld.passes.graph.lower_torch_to_linalg import UnloweredError
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.ir.utils import functions_of
from magweld.passes.tile.alternatives import alternatives
from magweld.passes.tile.apply_plans import PLAN
from magweld.passes.tile.units import Unit, mark_units, units_of
from magweld.runtime.container import decode_parts, decode_request, encode_program


def find_units(payload: bytes) -> bytes:
    """Return the tile graph of a request as text, and the units of it.

    The answer is JSON: `graph` and `units`, each with `structure` and predicted
    `seconds`; or `unlowered`, the nodes that have no lowering.

    Raises:
        MagweldError: The module cannot be lowered.
    """
    options_text, text = decode_request(payload)
    options = CompileOptions.parse(options_text)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        try:
            lower_to_tiles(module, options, Phase.TILE_GRAPH)
        except UnloweredError as error:
            if not error.nodes:
                raise
            return json.dumps({"unlowered": sorted(error.nodes)}).encode()
        found: list[Unit] = []
        for function in functions_of(module.operation):
            if is_tile_graph(function):
                units = units_of(function, options.fusion)
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
    options = CompileOptions.parse(options_text)
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
        options = CompileOptions.parse(options_text)
        return encode_program(compile_tiled(module, options, Phase.TILE_GRAPH))


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
        options = CompileOptions.parse(options_text)
        return encode_program(compile_tiled(module, options, Phase.TILE_GRAPH))


def _add_plan(module: Any, text: str, number: int) -> None:
    """Move the functions of a plan's module into another one."""
    for function in functions_of(ir.Module.parse(text).operation):
        clone = function.operation.clone()
        clone.attributes["sym_name"] = ir.StringAttr.get(f"plan_{number}")
        clone.attributes["sym_visibility"] = ir.StringAttr.get("private")
        module.body.append(clone)
