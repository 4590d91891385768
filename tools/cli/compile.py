"""Owns `magweld compile`: a model to an artifact file."""

from __future__ import annotations

import argparse

from magweld.aot.entry import compile
from magweld.targets import parse_target
from magweld.tools.cli.program import (
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
