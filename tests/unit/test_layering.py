"""The layers: who may import whom, where torch may be, and what names may not occur."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Where the packages are on disk; magweld itself comes last, as it contains the others.
FOLDERS = {
    "magweld.dialects": ROOT / "dialects",
    "magweld.frontend": ROOT / "frontend",
    "magweld.passes": ROOT / "passes",
    "magweld.tools": ROOT / "tools",
    "magweld": ROOT / "python" / "magweld",
}

# Module or package -> what it may import of magweld beside itself. A longer name wins
# over a shorter one; whatever matches nothing here fails the test.
DESCRIPTIONS = (
    "magweld.artifact",
    "magweld.bindings",
    "magweld.codegen",
    "magweld.compiler_options",
    "magweld.context",
    "magweld.diagnostics",
    "magweld.dialects",
    "magweld.env",
    "magweld.logs",
    "magweld.reproducer",
    "magweld.short_repr",
    "magweld.targets",
    "magweld.tensor_map",
)
LAYERS: dict[str, tuple[str, ...]] = {
    "magweld.artifact": ("magweld.short_repr", "magweld.tensor_map"),
    "magweld.bindings": (),
    "magweld.columns": (),
    "magweld.comparison": (),
    "magweld.diagnostics": (),
    "magweld.env": (),
    "magweld.generators": (),
    "magweld.kept": (),
    "magweld.layouts": (),
    "magweld.logs": ("magweld.env",),
    "magweld.packed_text": (),
    "magweld.paced": (),
    "magweld.progress": (),
    "magweld.reports": (),
    "magweld.required_truth": (),
    "magweld.tiers": (
        "magweld.comparison",
        "magweld.logs",
        "magweld.paced",
        "magweld.progress",
        "magweld.stand_by",
    ),
    "magweld.report_text": ("magweld.columns", "magweld.tile_graphs"),
    "magweld.tile_graphs": ("magweld.columns", "magweld.reports"),
    "magweld.short_repr": (),
    "magweld.stand_by": (),
    "magweld.storages": (),
    "magweld.tensor_map": (),
    "magweld.tensor_words": (),
    "magweld.codegen": DESCRIPTIONS,
    "magweld.compiler_options": DESCRIPTIONS,
    "magweld.context": DESCRIPTIONS,
    "magweld.dialects": DESCRIPTIONS,
    "magweld.reproducer": DESCRIPTIONS,
    "magweld.targets": DESCRIPTIONS,
    # What the front end hands over: it knows nothing of how a graph was captured.
    "magweld.graphs": (
        *DESCRIPTIONS,
        "magweld.layouts",
        "magweld.paced",
        "magweld.reports",
        "magweld.tiers",
    ),
    # A record of a run that needs gradients asks for both halves of its graph.
    "magweld.frontend": (
        *DESCRIPTIONS,
        "magweld.columns",
        "magweld.comparison",
        "magweld.generators",
        "magweld.graphs",
        "magweld.kept",
        "magweld.layouts",
        "magweld.paced",
        "magweld.report_text",
        "magweld.reports",
        "magweld.required_truth",
        "magweld.storages",
        "magweld.tensor_words",
        "magweld.tiers",
        "magweld.training",
    ),
    "magweld.importer": (
        *DESCRIPTIONS,
        "magweld.layouts",
        "magweld.paced",
        "magweld.required_truth",
        "magweld.storages",
    ),
    "magweld.training": (
        *DESCRIPTIONS,
        "magweld.cut_graph",
        "magweld.frontend.capture",
        "magweld.frontend.operators",
        "magweld.graphs",
        "magweld.importer",
        "magweld.kept",
        "magweld.layouts",
        "magweld.reports",
        "magweld.storages",
        "magweld.tiers",
    ),
    "magweld.passes": DESCRIPTIONS,
    "magweld.runtime": (*DESCRIPTIONS, "magweld.reports", "magweld.tensor_words"),
    "magweld": ("magweld",),
    "magweld.aot": ("magweld",),
    "magweld.api": ("magweld",),
    "magweld.checking": ("magweld",),
    "magweld.compiler": ("magweld",),
    "magweld.forked_work": ("magweld",),
    "magweld.control_graph": ("magweld",),
    "magweld.control_text": ("magweld",),
    "magweld.cut_graph": ("magweld",),
    "magweld.deploy": ("magweld",),
    "magweld.deploy.portable_artifact": (
        "magweld.aot.errors",
        "magweld.aot.files",
        "magweld.aot.nested",
        "magweld.deploy.portable_file",
    ),
    "magweld.deploy.portable_file": ("magweld.aot.errors",),
    "magweld.device_compiler": ("magweld",),
    "magweld.device_kernels": ("magweld",),
    "magweld.dynamo": ("magweld",),
    "magweld.host_function": ("magweld",),
    "magweld.kernel_code": ("magweld",),
    "magweld.loading": ("magweld",),
    "magweld.piecewise": ("magweld",),
    "magweld.program_sizes": ("magweld",),
    "magweld.sized_graph": ("magweld",),
    "magweld.tools": ("magweld",),
    "magweld.tuning": ("magweld",),
    "magweld.native_code": ("magweld",),
    "magweld.verdicts": ("magweld",),
}

TORCH_ALLOWED = (
    "magweld.aot",
    "magweld.api",
    "magweld.checking",
    "magweld.control_graph",
    "magweld.control_text",
    "magweld.cut_graph",
    "magweld.deploy.compile",
    "magweld.deploy.forms",
    "magweld.deploy.sizes",
    "magweld.dynamo",
    "magweld.frontend",
    "magweld.generators",
    "magweld.graphs",
    "magweld.importer",
    "magweld.layouts",
    "magweld.loading",
    "magweld.piecewise",
    "magweld.required_truth",
    "magweld.runtime",
    "magweld.sized_graph",
    "magweld.storages",
    "magweld.tensor_words",
    "magweld.tools.cli",
    "magweld.training",
)

# module -> what of torch_mlir it may import beside what magweld.bindings carries, why.
TORCH_MLIR_ALLOWED: dict[str, tuple[str, str]] = {
    "magweld.bindings": ("torch_mlir", "it is the one that carries the bindings"),
    "magweld.aot.onnx_task": (
        "torch_mlir.extras.onnx_importer",
        "it imports onnx, which is an extra",
    ),
    "magweld.aot.torch_module": (
        "torch_mlir.extras.fx_importer",
        "it has the numbers of torch's types, and imports torch",
    ),
    "magweld.importer.torch_dialect": (
        "torch_mlir.extras.fx_importer",
        "it imports torch, which magweld.bindings must not",
    ),
}

# Names of models, model libraries and benchmarks: behaviour never depends on them.
PRODUCT_NAMES = re.compile(
    r"timm|torchvision|transformers|diffusers|hugging.?face|torchbench"
    r"|mini.?lm|\bbert|deberta|resnet|convnext|\bvit\b|\bswin\b|\bgpt|llama",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Import:
    """One imported module and where that is written."""

    target: str
    place: str


def sources() -> Iterator[tuple[str, Path]]:
    """Yield every module of magweld by name, with its file."""
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            inner = parts[:-1] if parts[-1] == "__init__" else parts
            yield ".".join((package, *inner)), path


SOURCES = tuple(sources())
MODULES = frozenset(name for name, _ in SOURCES)


def imports_in(source: str, place: str) -> Iterator[Import]:
    """Yield the modules that a source text imports, anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        at = f"{place}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, at) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # A relative import would hide where it goes; none is used.
            module = "." * node.level + (node.module or "")
            names = (f"{module}.{alias.name}" for alias in node.names)
            # `from package import name` imports a module or something inside one.
            yield from (Import(n if n in MODULES else module, at) for n in names)


def is_inside(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def layer_of(module: str) -> str | None:
    """Return the longest entry of the table that a module belongs to."""
    if module == "magweld":
        return module
    found = [k for k in LAYERS if k != "magweld" and is_inside(module, k)]
    return max(found, key=len, default=None)


def layering_faults(module: str, imported: Import) -> Iterator[str]:
    """Say what is wrong with one import of one module, if anything is."""
    layer, target = layer_of(module), imported.target
    text = f"{imported.place}: {module} imports {target}"
    top = target.partition(".")[0]
    if top == "":
        yield f"{text} relatively"
    if top == "torch" and not any(is_inside(module, p) for p in TORCH_ALLOWED):
        yield f"{text}, allowed in {' and '.join(TORCH_ALLOWED)}"
    if top == "torch_mlir":
        allowed, _ = TORCH_MLIR_ALLOWED.get(module, ("nothing of it", ""))
        if not is_inside(target, allowed):
            yield f"{text}, allowed is {allowed}"
    # The package itself holds the version and must stay importable from everywhere.
    if top == "magweld" and target != "magweld" and layer is not None:
        known = (layer, *LAYERS[layer])
        if not any(is_inside(target, package) for package in known):
            yield f"{text}, allowed are {', '.join(known)}"


# One test for all modules: as many tests would take longer to start than to run.
def test_modules_keep_to_their_layers() -> None:
    outside = [module for module, _ in SOURCES if layer_of(module) is None]
    assert not outside, "add them to LAYERS"
    assert not [
        fault
        for module, path in SOURCES
        for found in imports_in(
            path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
        )
        for fault in layering_faults(module, found)
    ]


def test_no_product_is_named() -> None:
    assert not [
        f"{path}:{n}: {line}"
        for module, path in SOURCES
        if not is_inside(module, "magweld.tools")
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if PRODUCT_NAMES.search(line)
    ]


def unit_of(module: str) -> str:
    """Return the package that a module belongs to; the front end has many."""
    return ".".join(
        module.split(".")[: 3 if is_inside(module, "magweld.frontend") else 2]
    )


class RuntimeImports(ast.NodeVisitor):
    """The imports of a source text, without those that only a type checker follows."""

    def __init__(self) -> None:
        self.found: list[ast.stmt] = []

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.found.append(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.found.append(node)


def test_the_packages_around_the_front_end_have_no_cycle() -> None:
    order: TopologicalSorter[str] = TopologicalSorter()
    packages = ("magweld.frontend", "magweld.importer", "magweld.training")
    for module, path in SOURCES:
        if module == "magweld.frontend" or not any(
            is_inside(module, package) for package in packages
        ):
            continue
        visitor = RuntimeImports()
        visitor.visit(ast.parse(path.read_text(encoding="utf-8")))
        for statement in visitor.found:
            for imported in imports_in(ast.unparse(statement), str(path)):
                unit = unit_of(imported.target)
                if unit != unit_of(module):
                    order.add(unit_of(module), unit)
    order.prepare()  # raises CycleError, which names the packages


def test_the_tables_name_modules_that_exist() -> None:
    assert {*LAYERS} <= MODULES
    assert {*TORCH_MLIR_ALLOWED} <= MODULES


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("magweld.passes.x", "import torch"),
        ("magweld.passes.x", "def f():\n    from torch import fx"),
        ("magweld.passes.x", "from magweld.frontend import trace"),
        ("magweld.passes.x", "from magweld import frontend"),
        ("magweld.passes.x", "import magweld.runtime.program"),
        ("magweld.passes.x", "from torch_mlir import ir"),
        ("magweld.passes.x", "from . import base"),
        ("magweld.runtime.x", "from magweld.passes.infrastructure.base import Pass"),
        ("magweld.diagnostics", "from magweld.bindings import ir"),
        ("magweld.dialects.x", "from magweld.passes import base"),
        ("magweld.frontend.x", "from torch_mlir.extras import fx_importer"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str) -> None:
    imports = imports_in(source, "x.py")
    assert [fault for i in imports for fault in layering_faults(module, i)]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("magweld.passes.x", "from magweld.passes.infrastructure.base import Pass"),
        ("magweld.passes.x", "from magweld.bindings import ir"),
        ("magweld.frontend.x", "import torch"),
        ("magweld.tools.x", "from magweld.passes import base"),
        ("magweld.api", "from magweld import frontend"),
    ],
)
def test_a_right_import_is_let_through(module: str, source: str) -> None:
    imports = imports_in(source, "x.py")
    assert not [fault for i in imports for fault in layering_faults(module, i)]
