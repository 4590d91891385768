"""Groups of operators that share a kernel: how many, how large, how many reduce.

    python benchmarks/paper_figures/patterns.py [--cases NAME ...] [--batch N]
        [--devices NAME ...] [-o FILE]

Welder, Table 4. Models are planned for a device, not run. Groups are equal if their
operators are of equal kinds and extents, in the same order; contractions, convolutions
and all else that sums over a loop reduce.
"""

from __future__ import annotations

from typing import Any

from model_plans import CASES, Group, imported_case, options, planned
from reporting import show_cells, write_report


def counts(groups: set[Group]) -> dict[str, int]:
    """Return what the table tells of some groups."""
    sizes = [len(group.operators) for group in groups]
    return {
        "distinct groups": len(groups),
        "with two reductions": sum(group.reductions > 1 for group in groups),
        "fewest operators": min(sizes, default=0),
        "most operators": max(sizes, default=0),
    }


def main() -> None:
    """Plan the chosen models."""
    chosen = options(__doc__, __file__, CASES, batch=64)
    results: list[dict[str, Any]] = []
    every: set[Group] = set()
    for name in chosen.cases:
        graph = imported_case(name, chosen.batch)
        for device in chosen.devices:
            plan = planned(graph, device)
            found = set(plan.groups)
            every |= found
            cells = {"kernels": plan.kernels, "groups": len(plan.groups)}
            cells |= counts(found)
            results.append({"case": f"{name} {device}", "cells": cells})
            show_cells(results[-1:])
            write_report(
                chosen.o, 1, results, batch=chosen.batch, together=counts(every)
            )
    show_cells([*results, {"case": "together", "cells": counts(every)}])


if __name__ == "__main__":
    main()
