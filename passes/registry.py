"""Owns the table of magweld's passes by name; classes are imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from magweld.passes.base import Pass

# One line a pass: `name` is its name in pipelines, of its module and its lit file.
_PASSES: tuple[tuple[str, str], ...] = (
    ("absorb-transpose", "magweld.passes.graph.absorb_transpose:AbsorbTranspose"),
    ("absorb-unit-dims", "magweld.passes.graph.absorb_unit_dims:AbsorbUnitDims"),
    ("connect-operators", "magweld.passes.tile.connect_operators:ConnectOperators"),
    ("extract-subgraphs", "magweld.passes.tile.extract_subgraphs:ExtractSubgraphs"),
    ("fold-transpose", "magweld.passes.graph.fold_transpose:FoldTranspose"),
    ("form-tile-graph", "magweld.passes.graph.form_tile_graph:FormTileGraph"),
    ("lower-subgraphs", "magweld.passes.graph.lower_subgraphs:LowerSubgraphs"),
    ("propagate-tiles", "magweld.passes.tile.propagate_tiles:PropagateTiles"),
    ("plan-memory", "magweld.passes.graph.plan_memory:PlanMemory"),
    (
        "select-implementation",
        "magweld.passes.graph.select_implementation:SelectImplementation",
    ),
    ("select-tiles", "magweld.passes.tile.select_tiles:SelectTiles"),
    (
        "unflatten-batch-matmul",
        "magweld.passes.graph.unflatten_batch_matmul:UnflattenBatchMatmul",
    ),
)


class PassRegistry:
    """Names of passes and where their classes are."""

    def __init__(self, entries: Iterable[tuple[str, str]]) -> None:
        """Make a registry of `(name, "module:Class")` entries.

        Raises:
            ValueError: Two entries have one name, or one is ill-formed.
        """
        self._targets: dict[str, str] = {}
        for name, target in entries:
            if name in self._targets:
                other = self._targets[name]
                raise ValueError(f"pass '{name}' is both {other} and {target}")
            if target.count(":") != 1:
                raise ValueError(f"pass '{name}': '{target}' is no 'module:Class'")
            self._targets[name] = target

    def __contains__(self, name: object) -> bool:
        return name in self._targets

    def names(self) -> tuple[str, ...]:
        """Return all names, sorted."""
        return tuple(sorted(self._targets))

    def target(self, name: str) -> str:
        """Return the `module:Class` of a pass without importing it."""
        return self._targets[name]

    def get(self, name: str) -> type[Pass]:
        """Import and return the class of a pass.

        Raises:
            KeyError: No pass has the name.
            TypeError: The table names something else than this pass.
        """
        module_name, class_name = self._targets[name].split(":")
        found = getattr(importlib.import_module(module_name), class_name)
        if not (isinstance(found, type) and issubclass(found, Pass)):
            raise TypeError(f"{self._targets[name]} is no pass")
        if found.name != name:
            raise TypeError(f"{self._targets[name]} is called '{found.name}'")
        return found


PASSES = PassRegistry(_PASSES)
