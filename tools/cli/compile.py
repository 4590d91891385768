"""Owns `magweld compile`: a model to an artifact file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from magweld.aot.entry import compile
from magweld.aot.onnx_model import load_onnx
from magweld.aot.sources import Model
from magweld.aot.torch_module import load_torch_module
from magweld.artifact import HOST_TARGET
from magweld.deploy.compile import compile_portable
from magweld.deploy.signatures import PrivateKey
from magweld.targets import parse_target
from magweld.tools.cli.program import (
    CommandLineError,
    example_inputs,
    load_exported,
    load_model,
    memory_budget,
    require_runs,
)
from magweld.tools.cli.sign import signed

_EXPORTED = ".pt2"
_MODULES = (".mlir", ".mlirbc")
_ONNX = ".onnx"


def run(options: argparse.Namespace) -> None:
    """Compile a model for a target, write the artifact and sign it if asked to."""
    # What is wrong in the options is told before the model is loaded.
    parse_target(options.target)
    budget = memory_budget(options.memory_budget)
    if options.portable and (options.target != HOST_TARGET or budget or options.tune):
        raise CommandLineError(
            "--portable makes code for CPUs, without --memory-budget and --tune"
        )
    if len(options.inputs) > 1 and not options.portable:
        raise CommandLineError("only with --portable --inputs is given several times")
    if options.dynamic and not (options.portable and options.model.endswith(_EXPORTED)):
        raise CommandLineError("--dynamic is for --portable and a .pt2 file")
    key = None if options.sign is None else PrivateKey(options.sign)
    inputs = [example_inputs(texts) for texts in options.inputs]
    model = _load(options.model, inputs)
    if options.portable:
        _compile_portable(options, model, inputs)
    else:
        _compile(options, model, inputs, budget)
    if key is not None:
        print(signed(Path(options.output), key))


def _compile(
    options: argparse.Namespace,
    model: Model,
    inputs: Sequence[Sequence[Tensor]],
    budget: int | None,
) -> None:
    artifact = compile(
        model,
        inputs[0] if inputs else None,
        options.target,
        tune=options.tune,
        memory_budget=budget,
    )
    artifact.save(options.output)
    report = artifact.report()
    print(f"{options.output}: for {options.target}, kernels: {len(report['groups'])}")
    if report["externals"]:
        print(f"through torch: {', '.join(report['externals'])}")
    for name, reason in report.get("refused", {}).items():
        print(f"no code for {name}: {reason}")


def _load(name: str, inputs: Sequence[Sequence[Tensor]]) -> Model:
    """Return a model that takes the inputs, or an exported program.

    Raises:
        CommandLineError: There is none, or it does not take them.
        OSError: A file cannot be read.
    """
    if name.endswith(_EXPORTED):
        return load_exported(Path(name))
    if name.endswith(_MODULES):
        return load_torch_module(Path(name))
    if name.endswith(_ONNX):
        # One set of sizes is told to the importer: it has less to compute at run time.
        shapes = [x.shape for x in inputs[0]] if len(inputs) == 1 else None
        return load_onnx(Path(name), shapes)
    if not inputs:
        raise CommandLineError(f"--inputs is missing for '{name}'")
    model = load_model(name)
    for one in inputs:
        require_runs(model, one)
    return model


def _compile_portable(
    options: argparse.Namespace, model: Model, inputs: Sequence[Sequence[Tensor]]
) -> None:
    dynamic = True if options.dynamic else None
    artifact = compile_portable(model, *inputs, dynamic=dynamic)
    artifact.save(options.output)
    levels = sorted({code.level for code in artifact.program.codes})
    names = ", ".join(f"x86-64-v{level}" for level in levels)
    print(f"{options.output}: portable, for CPUs of {names}")
