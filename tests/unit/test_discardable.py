"""The table of the attributes that passes leave on ops of other dialects."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from magweld.bindings import ir
from magweld.context import make_context
from magweld.dialects import tile_graph
from magweld.dialects.tile_graph.discardable import (
    DISCARDABLE,
    discardable_violations,
)
from magweld.dialects.tile_graph.kernels import REPORTS

ROOT = Path(__file__).parents[2]
FOLDERS = ("passes", "dialects", "python/magweld/codegen")
SOURCES = [
    *(
        path
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.name != "discardable.py"
    ),
    ROOT / "python/magweld/host_function.py",
]
NAME = re.compile(r"(?:magweld|tile_graph)\.[a-z_]+")
OPS = {
    getattr(tile_graph, name).OPERATION_NAME
    for name in tile_graph.__all__
    if name.endswith("Op")
}
# Marks that a pass removes before it ends.
WITHIN_A_PASS = {"magweld.interchange", "magweld.reduction_step", "magweld.unroll"}


def names_in(path: Path) -> Iterator[str]:
    """Yield the texts in a source that look like names of attributes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if NAME.fullmatch(node.value) and node.value not in OPS:
                yield node.value


def test_the_table_has_what_passes_name_and_reports_and_nothing_else() -> None:
    named = {name for path in SOURCES for name in names_in(path)}
    reported = {f"tile_graph.{name}" for name in REPORTS}
    listed = {attribute.name for attribute in DISCARDABLE}
    assert listed == (named | reported) - WITHIN_A_PASS


def test_a_name_stands_once() -> None:
    names = [attribute.name for attribute in DISCARDABLE]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "violation"),
    [
        ("func.func private @f() attributes {tile_graph.kernel}", None),
        (
            "func.func private @f() attributes {tile_graph.kernel = 1}",
            "expected attribute 'tile_graph.kernel' to be UnitAttr, got 1 : i64",
        ),
        (
            "func.func private @f() attributes {magweld.tiles = 0}",
            "expected attribute 'magweld.tiles' to be at least 1, got 0 : i64",
        ),
        (
            "func.func private @f() attributes {magweld.place = 'x'}",
            "expected no attribute 'magweld.place', which is of 'tensor.empty'",
        ),
        (
            "func.func private @f() attributes {tile_graph.kernels}",
            "expected no attribute 'tile_graph.kernels': no pass leaves such a one",
        ),
    ],
)
def test_what_an_attribute_has_to_be(text: str, violation: str | None) -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text.replace("'", '"'))
        (function,) = module.body.operations
        found = list(discardable_violations(function.operation))
    assert found == ([] if violation is None else [violation])
