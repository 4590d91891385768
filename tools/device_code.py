"""Owns the tool that shows GPU code: tiled kernels in, any stage of them out.

python -m magweld.tools.device_code --target nvvm:sm_90a --emit assembly k.mlir
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

from magweld.bindings import gpu, ir
from magweld.codegen.device_code import compile_device_code
from magweld.codegen.device_llvm import DeviceCode
from magweld.codegen.llvm_text import translate_to_llvm_ir
from magweld.context import make_context
from magweld.diagnostics import MagweldError
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import operations_of
from magweld.passes.pipelines.gpu import gpu_phase_steps
from magweld.targets.target import Target, parse_target


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tool and return its exit code: 1 with one message if it fails."""
    options = _parser().parse_args(arguments)
    try:
        target = parse_target(options.target)
        with make_context(), ir.Location.unknown():
            module = ir.Module.parse(_read(options.input))
            output = _EMITTERS[options.emit](module, target)
        _write(options.output, output)
    except (MagweldError, ir.MLIRError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Show the GPU code of tiled kernels.")
    parser.add_argument("input", nargs="?", default="-", help="MLIR file; - is stdin")
    parser.add_argument("--target", required=True, help="nvvm:sm_80, rocdl:gfx942, ...")
    parser.add_argument("--emit", choices=sorted(_EMITTERS), default="assembly")
    parser.add_argument("-o", dest="output", default="-", help="file; - is stdout")
    return parser


def _read(path: str) -> str:
    return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")


def _write(path: str, data: bytes) -> None:
    if path == "-":
        sys.stdout.buffer.write(data)
    else:
        Path(path).write_bytes(data)


def _lower(module: ir.Module, target: Target, number: int) -> bytes:
    """Run the steps to the first phases behind tiled kernels, as many as a number."""
    phases = tuple(gpu_phase_steps(target).values())[:number]
    run_pipeline(Pipeline(tuple(chain.from_iterable(phases))), module)
    return f"{module}\n".encode()


def _emit_gpu(module: ir.Module, target: Target) -> bytes:
    """Stop at the gpu dialect."""
    return _lower(module, target, 1)


def _emit_llvm(module: ir.Module, target: Target) -> bytes:
    """Stop at the NVVM or ROCDL dialect."""
    return _lower(module, target, 2)


def _emit_module(module: ir.Module, target: Target) -> bytes:
    """Go to `gpu.binary`."""
    return _lower(module, target, 3)


def _compile(module: ir.Module, target: Target) -> list[DeviceCode]:
    _emit_llvm(module, target)
    return [
        compile_device_code(translate_to_llvm_ir(device_module), str(target))
        for device_module in operations_of(module.operation, gpu.GPUModuleOp)
    ]


def _emit_assembly(module: ir.Module, target: Target) -> bytes:
    """Print PTX or AMD assembly of all kernels."""
    return "".join(code.assembly for code in _compile(module, target)).encode()


def _emit_binary(module: ir.Module, target: Target) -> bytes:
    """Write the cubin or code object of the only kernel.

    Raises:
        ValueError: There are several kernels, or a tool is missing.
    """
    codes = _compile(module, target)
    if len(codes) != 1:
        raise ValueError(f"expected one kernel, got {len(codes)}")
    if codes[0].binary is None:
        raise ValueError(codes[0].missing)
    return codes[0].binary


_EMITTERS: dict[str, Callable[[ir.Module, Target], bytes]] = {
    "assembly": _emit_assembly,
    "binary": _emit_binary,
    "gpu": _emit_gpu,
    "llvm": _emit_llvm,
    "module": _emit_module,
}

if __name__ == "__main__":
    sys.exit(main())
