"""Owns the compilation of a module in the torch dialect to code for a GPU.

`compile_for_device` runs in a worker process that never imports torch.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from magweld.bindings import gpu, ir
from magweld.compiler import lower_to_tiles
from magweld.compiler_options import CompileOptions
from magweld.context import make_context
from magweld.diagnostics import MagweldError
from magweld.host_function import HostCall, read_host_function
from magweld.kernel_code import dump_options
from magweld.passes.execution import run_pipeline
from magweld.passes.gpu.pipeline import gpu_pipeline
from magweld.passes.gpu.serialize_to_binary import LAUNCH
from magweld.passes.graph.lower_torch_to_linalg import UnloweredError
from magweld.passes.ir_utils import operations_of
from magweld.runtime.container import decode_request
from magweld.targets import Target, parse_target

_FORMATS = {int(gpu.CompilationTarget.Assembly): "assembly"}


def compile_for_device(payload: bytes) -> bytes:
    """Compile an encoded request, target name and module text, to JSON.

    Kernels that the GPU pipeline does not take are listed with the reason. Bytes of
    machine code are in base64.

    Raises:
        MagweldError: The module cannot be scheduled for the device.
    """
    name, text = decode_request(payload)
    target = parse_target(name)
    options = CompileOptions(device=target.reference, library="never")
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        try:
            lower_to_tiles(module, options)
        except UnloweredError as error:
            if not error.nodes:
                raise
            return json.dumps({"unlowered": error.nodes}).encode()
        return json.dumps(_compile(module, target)).encode()


def _compile(module: Any, target: Target) -> dict[str, Any]:
    functions = {op.name.value: op for op in module.body.operations}
    host = read_host_function(module)
    calls = host.calls
    reports = {c.callee: c.report for c in calls if c.kind == "kernel"}
    kernels, refused = [], []
    for name, report in reports.items():
        try:
            kernel = _compile_kernel(functions[name], target)
            kernels.append({"name": name, "report": report, **kernel})
        except (MagweldError, ir.MLIRError) as error:
            refused.append({"name": name, "reason": str(error)})
    refused += [_not_generated(c) for c in calls if c.kind != "kernel"]
    return {
        "kernels": kernels,
        "refused": refused,
        "values": [[v.shape, v.dtype, v.place] for v in host.values],
        "calls": [[_name(c), c.operands, c.results] for c in calls],
    }


def _not_generated(call: HostCall) -> dict[str, str]:
    reason = "runs through torch" if call.kind == "external" else "runs in a library"
    return {"name": _name(call), "reason": reason}


def _name(call: HostCall) -> str:
    return call.node or call.callee


def _compile_kernel(function: Any, target: Target) -> dict[str, Any]:
    """Compile one kernel in a module of its own: others may be refused."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function.operation.clone()
    run_pipeline(gpu_pipeline(target), module, dump_options("gpu"))
    launches, codes = [], []
    for binary in operations_of(module.operation, gpu.BinaryOp):
        launches.append(_geometry(binary.operation.attributes[LAUNCH]))
        codes.append({_format(o): _base64(o.object) for o in _objects(binary)})
    return {"launches": launches, "codes": codes}


def _objects(binary: Any) -> list[Any]:
    return [gpu.ObjectAttr(attribute) for attribute in binary.objects]


def _format(object_: Any) -> str:
    return _FORMATS.get(int(object_.format), "binary")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _geometry(attribute: Any) -> dict[str, Any]:
    entries = {entry.name: entry.attr for entry in ir.DictAttr(attribute)}
    lists = ("arguments", "block", "grid")
    return {
        "symbol": entries["symbol"].value,
        "dynamic_shared_bytes": entries["dynamic_shared_bytes"].value,
        **{name: list(entries[name]) for name in lists},
    }
