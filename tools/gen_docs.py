"""Owns the reference pages that are generated: `python -m magweld.tools.gen_docs`."""

from __future__ import annotations

import argparse
from pathlib import Path

from magweld import env
from magweld.passes.infrastructure.base import Pass
from magweld.passes.infrastructure.options import (
    OptionInfo,
    describe_options,
    without_attributes,
)
from magweld.passes.infrastructure.registry import PASSES, PassRegistry
from magweld.passes.pipelines.cpu import cpu_phase_steps
from magweld.passes.pipelines.gpu import gpu_phase_steps
from magweld.passes.pipelines.middle import graph_steps
from magweld.targets.target import parse_target
from magweld.tools.dialect_page import dialect_page
from magweld.tools.pipeline_page import pipeline_page
from magweld.tools.refusals_page import refusals_page

NOTICE = "<!-- Written by `python -m magweld.tools.gen_docs`; do not edit. -->"

_PASSES_INTRODUCTION = """\
In the order in which they run; [pipeline.md](pipeline.md) shows one program at each
phase. A pass that runs to several phases stands at the first."""


def passes_page(registry: PassRegistry = PASSES) -> str:
    """Return the reference of all passes as Markdown."""
    parts = ["# Passes", NOTICE, _PASSES_INTRODUCTION]
    for title, names in passes_in_order(registry).items():
        parts.append(f"## {title}")
        for name in names:
            pass_class = registry.get(name)
            details = without_attributes(f"\n{pass_class.details()}").strip()
            parts += [f"### `{name}`", pass_class.summary(), details]
            parts += _options_of(pass_class)
    parts.append("## Pipelines")
    for name in registry.pipeline_names():
        pipeline_class = registry.pipeline(name)
        parts += [f"### `{name}`", pipeline_class.summary()]
        parts += _options_of(pipeline_class)
    return "\n\n".join(part for part in parts if part) + "\n"


def passes_in_order(registry: PassRegistry = PASSES) -> dict[str, list[str]]:
    """Return the names of all passes below titles, in the order of the pipelines."""
    budget = graph_steps("cpu", memory_budget=1)
    graph = {p: (*steps, *budget[p]) for p, steps in graph_steps("cpu").items()}
    ways = (graph, cpu_phase_steps(), gpu_phase_steps(parse_target("nvvm:sm_80")))
    seen: set[str] = set()
    found: dict[str, list[str]] = {}
    for way in ways:
        for phase, steps in way.items():
            names = found.setdefault(f"To phase `{phase}`", [])
            for step in steps:
                if isinstance(step, Pass) and step.name not in seen:
                    seen.add(step.name)
                    names.append(step.name)
    found["Beside the pipelines"] = [n for n in registry.names() if n not in seen]
    return {title: names for title, names in found.items() if names}


def _options_of(described: type) -> list[str]:
    options = describe_options(described)
    return ["\n".join(_option_table(options))] if options else []


def env_vars_page() -> str:
    """Return the reference of all environment variables as Markdown."""
    rows = [
        f"| `{v.name}` | {v.type_name} | {v.default_text} | {v.doc} |"
        for v in env.VARIABLES
    ]
    levels = [f"- {n}: {text}" for n, text in enumerate(env.DEBUG_LEVELS)]
    topics = [f"- `{name}`: {text}" for name, text in env.LOG_TOPICS.items()]
    table = ["| variable | value | default | meaning |", "|---|---|---|---|", *rows]
    return (
        "\n\n".join(
            [
                "# Environment variables",
                NOTICE,
                "A variable is read at each use; an empty one counts as unset.",
                "\n".join(table),
                f"## Topics of `{env.LOGS.name}`",
                "\n".join(topics),
                f"## Levels of `{env.DEBUG.name}`",
                "Each level shows what the one before it shows, and:",
                "\n".join(levels),
            ]
        )
        + "\n"
    )


def main() -> None:
    """Write the pages into a folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs"))
    folder = parser.parse_args().folder
    pages = {
        "passes.md": passes_page(),
        "env_vars.md": env_vars_page(),
        "pipeline.md": pipeline_page(folder.resolve().parent, NOTICE),
        "tile_graph.md": dialect_page(folder.resolve().parent, NOTICE),
        "refusals.md": refusals_page(NOTICE),
    }
    for name, page in pages.items():
        (folder / name).write_text(page, encoding="utf-8")


def _option_table(options: tuple[OptionInfo, ...]) -> list[str]:
    rows = ["| option | value | default | meaning |", "|---|---|---|---|"]
    for option in options:
        default = "must be given" if option.default is None else f"`{option.default}`"
        rows.append(
            f"| `{option.name}` | {option.type_name} | {default} | {option.help} |"
        )
    return rows


if __name__ == "__main__":
    main()
