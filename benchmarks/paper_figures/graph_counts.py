"""How many graphs two front ends make of a program.

    python benchmarks/paper_figures/graph_counts.py [--cases NAME ...] [--layers N]
        [-o FILE]

MagPy, Table 2. Graphs run by torch, so nothing is compiled; results are compared with
eager's. Models get three equal calls; the programs of `dynamic.py` get the stream of
inputs that is theirs, whose sizes and branches change.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import torch
from dynamic import PROGRAMS, Graphs
from magpy_models import cases
from reporting import report_file, show_cells, write_report
from torch import nn

from magweld import frontend

Stream = Sequence[tuple[Any, ...]]
CALLS = 3


def counted(make: Callable[[], nn.Module], stream: Stream) -> dict[str, Any]:
    """Return the numbers of graphs and calls of one program.

    Raises:
        AssertionError: A result differs from eager's.
    """
    made = []
    for _ in range(CALLS):
        torch.manual_seed(0)
        made.append(make().eval())
    eager, ours, theirs = made
    traced = frontend.trace(ours, backend="eager")
    torch.compiler.reset()
    graphs = Graphs()
    compiled = torch.compile(theirs, backend=graphs)
    for arguments in stream:
        expected = eager(*arguments)
        for call in (traced, compiled):
            torch.testing.assert_close(call(*arguments), expected, rtol=1e-3, atol=1e-4)
    stats = traced.stats()
    return {
        "calls": stats["calls"],
        "hits": stats["hits"],
        "breaks": len(traced.breaks),
        "magweld": stats["graphs"],
        "torch.compile": graphs.count,
    }


def main() -> None:
    """Count the graphs of the chosen programs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*cases(), *PROGRAMS]
    parser.add_argument("--cases", nargs="+", choices=names, default=names)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("-o", type=Path, default=report_file(__file__))
    options = parser.parse_args()
    models = cases(options.layers)
    results: list[dict[str, Any]] = []
    with torch.no_grad():
        for name in options.cases:
            if name in models:
                make, stream = models[name].build, [models[name].inputs(1)] * CALLS
            else:
                make, stream = PROGRAMS[name][0], PROGRAMS[name][1]()
            inputs = "equal" if name in models else "changing"
            cells = {"inputs": inputs, **counted(make, stream)}
            results.append({"case": name, "cells": cells})
            show_cells(results[-1:])
            write_report(options.o, torch.get_num_threads(), results)
    show_cells(results)


if __name__ == "__main__":
    main()
