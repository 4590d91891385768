"""Owns docs/refusals.md: why programs are not compiled, by the ids of errors."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from magweld.aot import errors as aot
from magweld.deploy import errors as deploy
from magweld.diagnostics import Refusal
from magweld.training import refusals as training

_INTRODUCTION = """\
Each error and each reason in `explain()` has an id. Those that keep a call from being
captured are [breaks](breaks.md), those of graphs are in
[importer.md](importer.md#refusals), those of GPUs in [gpu.md](gpu.md#what-is-refused).
These are the others."""

_SECTIONS: tuple[tuple[str, str, ModuleType], ...] = (
    (
        "A graph that needs gradients",
        "Torch runs the graph as a whole, gradients included; `explain()` has the "
        "reason under `training-graph`.",
        training,
    ),
    (
        "An artifact",
        "`magweld.compile` and `magweld.compile_portable` raise an `UnsupportedError`.",
        aot,
    ),
    ("A portable artifact", "`magweld.compile_portable` raises one as well.", deploy),
)


def refusals_page(notice: str) -> str:
    """Return the page as Markdown.

    Args:
        notice: What to put below the title.
    """
    parts = ["# Refusals", notice, _INTRODUCTION]
    for title, text, module in _SECTIONS:
        rows = ["| id | reason | hint |", "| --- | --- | --- |", *_rows(module)]
        parts += [f"## {title}", text, "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def _rows(module: ModuleType) -> Iterator[str]:
    for entry in vars(module).values():
        if isinstance(entry, Refusal):
            reason = entry.reason.replace("{detail}", "...")
            yield f"| `{entry.id}` | {reason} | {entry.hint} |"
