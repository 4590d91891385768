"""Plans of the subgraphs for GPUs, made without one, at the sizes of the papers.

    python benchmarks/device_plans.py [--cases NAME ...] [-o FILE] [--write]

For each case and device: kernels, bytes from and to the device's memory against the
least that could move (arguments and results once), predicted time as planned and with
every operator apart, and each edge that is left unconnected with the rule and the
number. `--write` updates benchmarks/device_plans.md and the tests in lit_tests/plans,
which hold the same programs at the level of linalg: look at what changes.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from paper_shapes import paper_shapes
from subgraph_cases import CASES, Case
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from magweld.bindings import ir
from magweld.columns import bytes_text, seconds_text
from magweld.compiler import lower_to_tiles
from magweld.context import make_context
from magweld.device_compiler import device_options
from magweld.importer.importer import import_graph
from magweld.passes.analysis.summary import summarize
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.phases import Phase
from magweld.passes.infrastructure.pipeline import Pipeline
from magweld.passes.ir.utils import find_function
from magweld.passes.pipelines.middle import GpuPipeline
from magweld.reports import operators_of
from magweld.targets import parse_target

ROOT = Path(__file__).parents[1]
_NUMBER = re.compile(
    r"(?P<digits>[0.]*\d(\.?\d){0,2})[.\d]*(?P<exponent>[eE][-+]?\d+)?"
)
TABLE = ROOT / "benchmarks" / "device_plans.md"
TESTS = ROOT / "lit_tests" / "plans"
# Code for the oldest target there is may be planned for an older device.
TARGETS = {"v100": "nvvm:sm_80@v100", "h100": "nvvm:sm_90a@h100"}


@dataclass(frozen=True)
class Planned:
    """A case planned for a device.

    Attributes:
        case: Its name.
        device: Its name.
        least: Bytes of arguments and results.
        graph: The summary of the scheduled graph.
        checks: Lines that FileCheck finds in the scheduled module.
    """

    case: str
    device: str
    least: int
    graph: dict[str, Any]
    checks: tuple[str, ...]

    def total(self, key: str) -> float:
        """Return the sum of a number of the plans of all steps."""
        plans = (step["plan"] or {} for step in self.graph["steps"])
        return sum(float(plan.get(key, 0)) for plan in plans)


def arguments(case: Case) -> list[Tensor]:
    """Return tensors whose memory is never touched."""
    indices = dict(case.indices)
    return [
        torch.empty(shape, dtype=torch.int64 if number in indices else torch.float32)
        for number, shape in enumerate(paper_shapes(case))
    ]


def linalg_text(case: Case) -> tuple[str, int]:
    """Return a case as linalg with locations, and bytes of arguments and results."""
    inputs = arguments(case)
    with torch.no_grad():
        graph = make_fx(case.function, tracing_mode="fake")(*inputs)
    meta = torch.device("meta")
    text = import_graph(graph, inputs, look_ups=True, device=meta).text
    results = next(iter(reversed(graph.graph.nodes))).args[0]
    made = results if isinstance(results, (tuple, list)) else (results,)
    tensors = [*inputs, *(node.meta["val"] for node in made)]
    least = sum(t.numel() * t.element_size() for t in tensors)
    target = parse_target(next(iter(TARGETS.values())))
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        lower_to_tiles(module, device_options(target), Phase.LINALG, target=target)
        name = case.name.replace("-", "_")
        text = module.operation.get_asm(enable_debug_info=True)
        return text.replace("@main(", f"@{name}("), least


def without_places(text: str) -> str:
    """Return the text of a module without its locations."""
    with make_context(), ir.Location.unknown():
        return str(ir.Module.parse(text))


def schedule(device: str) -> GpuPipeline:
    """Return how programs are planned that are compiled for a device."""
    return GpuPipeline(target=TARGETS[device], compile_to=Phase.SCHEDULED)


def plan(case: str, text: str, least: int, device: str) -> Planned:
    """Schedule a module of linalg for a device."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(Pipeline(schedule(device).steps()), module)
        function = find_function(module.operation, case.replace("-", "_"))
        graph = json.loads(json.dumps(asdict(summarize(function))))
        checks = tuple(_checks(function))
    return Planned(case, device, least, graph, checks)


def _checks(function: Any) -> Iterator[str]:
    """Yield what is decisive: plans of subgraphs, and edges left unconnected."""
    for op in function.regions[0].blocks[0].operations:
        attributes = op.operation.attributes
        if "refused" in attributes:
            level, refused = attributes["level"], attributes["refused"]
            yield (
                f'"tile_graph.connect"({{{{.+}}}}) {{level = {level}, '
                f"refused = {refused}}}"
            )
        if op.operation.name == "tile_graph.subgraph":
            yield "{{.*}}".join(_plan_checks(attributes))


def _plan_checks(attributes: Any) -> Iterator[str]:
    """Yield the attributes of a plan in the order in which they are printed."""
    first = [key for key in ("copy_stages", "footprint") if key in attributes]
    if first:
        yield "}) {" + ", ".join(f"{key} = {attributes[key]}" for key in first)
    yield f"level = {attributes['level']}"
    for key in ("predicted_seconds", "seconds_apart"):
        if key in attributes:
            yield f"{key} = {_first_digits(str(attributes[key]))} : f64"
    keys = ("tile", "traffic_after", "traffic_before")
    yield ", ".join(f"{key} = {attributes[key]}" for key in keys if key in attributes)


def _first_digits(text: str) -> str:
    """Return the pattern of a number by its first three digits and its exponent."""
    found = _NUMBER.match(text)
    assert found is not None, text
    digits, exponent = found["digits"].replace(".", "\\."), found["exponent"] or ""
    return f"{{{{{digits}[0-9]*{exponent}}}}}"


def write_test(case: Case, text: str, plans: list[Planned]) -> None:
    """Write the lit test of a case."""
    lines = [
        f"// {case.name}: {case.exercises}.",
        f"// At least {plans[0].least} bytes move: arguments and results.",
        "// Written by `python benchmarks/device_plans.py --write`.",
        "//",
    ]
    for planned in plans:
        lines.append(
            f"// RUN: magweld-opt --target={TARGETS[planned.device]} "
            f"--compile-from={Phase.LINALG} --compile-to={Phase.SCHEDULED} %s "
            f"| filecheck --check-prefix={planned.device.upper()} %s"
        )
    for planned in plans:
        prefix = planned.device.upper()
        name = case.name.replace("-", "_")
        lines += ["//", f"// {prefix}-LABEL: func.func @{name}("]
        lines += [f"// {prefix}: {check}" for check in planned.checks]
        lines.append(f'// {prefix}-NOT: "tile_graph.subgraph"')
    path = TESTS / f"{case.name}.mlir"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*lines, "", without_places(text)]), encoding="utf-8")


def table(plans: list[Planned]) -> str:
    """Return all plans as Markdown."""
    head = (
        "# Plans for V100 and H100",
        "",
        "<!-- Written by `python benchmarks/device_plans.py --write`; do not edit. -->",
        "",
        "Shapes are those of the papers, all in f32, without library calls and",
        "without matrix instructions, planned as programs are. *Least* are arguments",
        "and results once; *unfused* is every operator in a kernel of its own.",
        "",
        "| case | device | steps | moved | of least | predicted | unfused |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    )
    rows = [
        f"| {p.case} | {p.device} | {len(p.graph['steps'])} "
        f"| {bytes_text(int(p.total('traffic_after')))} "
        f"| {p.total('traffic_after') / p.least:.2f} "
        f"| {seconds_text(p.total('predicted_seconds'))} "
        f"| {seconds_text(p.total('seconds_apart'))} |"
        for p in plans
    ]
    sections = [line for planned in plans for line in _section(planned)]
    return "\n".join([*head, *rows, "", *sections])


def _section(planned: Planned) -> Iterator[str]:
    """Yield the kernels of a plan and the edges between them."""
    yield f"## {planned.case}, {planned.device}"
    yield ""
    for step in planned.graph["steps"]:
        tile = "x".join(map(str, (step["plan"] or {}).get("tile", ())))
        fit = (step["plan"] or {}).get("footprint")
        room = "" if fit is None else f", {bytes_text(fit)} of {step['plan']['level']}"
        done = ", ".join(operators_of(step))
        yield f"- `{step['name']}` {step['kind']}, tile {tile or 'none'}{room}: {done}"
    refused = {
        (e["producer"], e["consumer"], e["type"], e["refused"])
        for e in planned.graph["edges"]
        if e["refused"]
    }
    for producer, consumer, type_, reason in sorted(refused):
        yield f"- not connected: {producer} to {consumer}, {type_}: {reason}"
    yield ""


def main() -> None:
    """Plan the chosen cases."""
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", default=names, choices=names)
    parser.add_argument("-o", metavar="FILE", help="JSON file to write")
    parser.add_argument("--write", action="store_true", help="update table and tests")
    options = parser.parse_args()
    plans: list[Planned] = []
    for case in CASES:
        if case.name not in options.cases:
            continue
        text, least = linalg_text(case)
        made = [plan(case.name, text, least, device) for device in TARGETS]
        plans += made
        if options.write:
            write_test(case, text, made)
    text = table(plans)
    print(text)
    if options.o:
        records = [{**asdict(p), "checks": list(p.checks)} for p in plans]
        Path(options.o).write_text(json.dumps(records, indent=1), encoding="utf-8")
    if options.write and options.cases == names:
        TABLE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
