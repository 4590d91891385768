"""Owns `magweld compile`: a model to an artifact file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from magweld.aot.entry import compile
from magweld.artifact import HOST_TARGET
from magweld.deploy.compile import compile_portable
from magweld.targets import parse_target
from magweld.tools.cli.program import (
    CommandLineError,
    example_inputs,
    load_model,
    memory_budget,
    require_runs,
)


def run(options: argparse.Namespace) -> None:
    """Compile a model for a target and write the artifact."""
    # What is wrong in the options is told before the model is loaded.
    parse_target(options.target)
    budget = memory_budget(options.memory_budget)
    inputs = example_inputs(options.inputs)
    model = load_model(options.model)
    require_runs(model, inputs)
    if options.portable:
        _compile_portable(options, model, inputs)
        return
    artifact = compile(
        model, inputs, options.target, tune=options.tune, memory_budget=budget
    )
    artifact.save(options.output)
    report = artifact.report()
    print(f"{options.output}: for {options.target}, kernels: {len(report['groups'])}")
    if report["externals"]:
        print(f"through torch: {', '.join(report['externals'])}")
    for name, reason in report.get("refused", {}).items():
        print(f"no code for {name}: {reason}")


def _compile_portable(
    options: argparse.Namespace, model: Callable[..., Any], inputs: Sequence[Tensor]
) -> None:
    if options.target != HOST_TARGET or options.memory_budget or options.tune:
        raise CommandLineError(
            "--portable makes code for CPUs, without --memory-budget and --tune"
        )
    artifact = compile_portable(model, inputs)
    artifact.save(options.output)
    levels = sorted({code.level for code in artifact.program.codes})
    names = ", ".join(f"x86-64-v{level}" for level in levels)
    print(f"{options.output}: portable, for CPUs of {names}")
