"""Owns what the import of graphs needs when a process first imports one."""

from __future__ import annotations

import functools
import gc
import math
import sys

import torch
from torch import fx

from magweld.importer.importer import import_graph
from magweld.paced import Paced


@functools.cache
def prepare_first_use() -> None:
    """Import a graph of one operator, so that no later import waits for modules.

    torch and the bindings of MLIR import what they need when it is first used, for
    seconds in which paced work cannot pause. What they have imported is new to the
    garbage collector, too: to look through all that there is takes it a fifth of a
    second, which one of the next calls would wait for.
    """
    known = len(sys.modules)
    # In a thread of its own: the caller's may have modes, and a failure is no matter.
    Paced(_import_one).go_on(math.inf)
    if len(sys.modules) > known and gc.isenabled():
        gc.collect()


def _import_one() -> None:
    graph = fx.Graph()
    made = graph.call_function(torch.relu, (graph.placeholder("x"),))
    graph.output((made,))
    x = torch.ones(2, dtype=torch.float32, device="cpu")
    import_graph(fx.GraphModule(torch.nn.Module(), graph), [x], look_ups=True)
