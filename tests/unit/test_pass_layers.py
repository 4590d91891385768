"""The layers inside `magweld.passes`: which module may import which other ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "passes"
ROOT = "magweld.passes"


@dataclass(frozen=True)
class Layer:
    """A layer, which imports itself and the layers below.

    Attributes:
        name: For messages.
        members: Modules and packages; of two that fit a module the longer one counts.
        knows_ir: Whether it may import the bindings and our dialects.
    """

    name: str
    members: tuple[str, ...]
    knows_ir: bool = True


# From the lowest layer to the highest.
LAYERS = (
    Layer("machinery of passes", ("infrastructure",)),
    Layer("tiling and its cost", ("tiling",), knows_ir=False),
    Layer("reading and building of IR", ("ir",)),
    Layer("analysis of IR", ("analysis",)),
    Layer("transforms", ("cpu", "gpu", "graph", "memory", "phase", "plan", "tile")),
    Layer("pipelines", ("pipelines",)),
)

# Modules of the dialects that have no IR in them.
WITHOUT_IR = ("magweld.dialects.tile_graph.grid", "magweld.dialects.tile_graph.roles")

# Packages of transforms are independent of each other but for these modules, or those
# whose names begin so: why.
ACROSS = {
    ("gpu", "cpu.emit_"): "functions of numbers are expanded alike",
    ("gpu", "cpu.polynomials"): "their polynomials are computed alike",
}
TRANSFORMS = next(layer for layer in LAYERS if layer.name == "transforms")


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(FOLDER.rglob("*.py")):
        parts = path.relative_to(FOLDER).with_suffix("").parts
        if parts[-1] != "__init__":
            yield ".".join(parts), path


SOURCES = dict(modules())


def imported(source: str) -> Iterator[str]:
    """Yield what a source text imports as it runs, modules of passes by short name."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            short = node.module.removeprefix(f"{ROOT}.")
            for alias in node.names:
                inner = f"{short}.{alias.name}"
                yield inner if inner in SOURCES else short


def layer_of(module: str) -> int | None:
    """Return the number of the layer of a module by its longest member."""
    fitting = [
        (len(member), number)
        for number, layer in enumerate(LAYERS)
        for member in layer.members
        if module == member or module.startswith(f"{member}.")
    ]
    return max(fitting)[1] if fitting else None


def faults(module: str, source: str) -> Iterator[str]:
    """Say what is wrong with the imports of a module."""
    own = layer_of(module)
    if own is None:
        yield f"{module} is in no layer: add it to LAYERS"
        return
    layer = LAYERS[own]
    for target in imported(source):
        if target.startswith(WITHOUT_IR):
            continue
        if target.startswith(("magweld.bindings", "magweld.dialects")):
            if not layer.knows_ir:
                yield f"{module} imports {target}; '{layer.name}' knows no IR"
            continue
        other = layer_of(target) if target in SOURCES else None
        if other is None:
            continue
        if other > own:
            above = LAYERS[other].name
            yield f"{module} ('{layer.name}') imports {target} of '{above}' above it"
        package, other_package = module.split(".")[0], target.split(".")[0]
        if layer is TRANSFORMS is LAYERS[other] and package != other_package:
            if not any(package == a and target.startswith(b) for a, b in ACROSS):
                yield f"{module} imports {target} of another package of transforms"


@pytest.mark.parametrize("module", SOURCES)
def test_a_module_imports_its_layer_and_those_below(module: str) -> None:
    assert not [*faults(module, SOURCES[module].read_text(encoding="utf-8"))]


def test_the_table_names_modules_that_exist() -> None:
    packages = {module.split(".")[0] for module in SOURCES}
    for layer in LAYERS:
        assert {*layer.members} <= {*SOURCES, *packages}
    for _, target in ACROSS:
        assert any(module.startswith(target) for module in SOURCES)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tiling.regions", "from magweld.bindings import ir"),
        ("tiling.group", "from magweld.passes.analysis.summary import Plan"),
        ("infrastructure.base", "from magweld.passes.ir.utils import located_error"),
        ("ir.utils", "from magweld.passes.analysis.summary import StepSummary"),
        ("tiling.cost", "from magweld.passes.tile.units import units_of"),
        (
            "memory.plan_memory",
            "from magweld.passes.pipelines.middle import graph_steps",
        ),
        ("memory.plan_memory", "from magweld.passes.cpu.kernels import kernels_of"),
        ("nowhere", ""),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str) -> None:
    assert [*faults(module, source)]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tiling.group", "from magweld.passes.tiling.regions import Access"),
        ("memory.plan_memory", "from magweld.passes.memory.tile_list import TILES"),
        (
            "pipelines.middle",
            "from magweld.passes.memory.plan_memory import PlanMemory",
        ),
        ("pipelines.cpu", "from magweld.passes.cpu.vectorize import Vectorize"),
    ],
)
def test_a_right_import_is_let_through(module: str, source: str) -> None:
    assert not [*faults(module, source)]
