"""Owns the refusals of the importer: what a graph must not hold, why, what to do."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import fx

from magweld import diagnostics
from magweld.diagnostics import UnsupportedError
from magweld.importer.nodes import RECORDED

_TORCH: Final = str(Path(torch.__file__).parent)
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


@dataclass(frozen=True)
class Refusal(diagnostics.Refusal):
    """One kind of graph that the importer does not take."""

    def at(
        self, where: str, detail: Any = "", nodes: Sequence[fx.Node] = ()
    ) -> UnsupportedError:
        """Return the error to raise for a place.

        Args:
            where: The place.
            detail: Goes into the reason.
            nodes: The nodes without which the graph would be taken, if that is known.
        """
        error = super().at(where, detail)
        error.nodes = tuple(dict.fromkeys(map(recorded_name, nodes)))
        return error

    def at_node(self, node: fx.Node, detail: Any = "") -> UnsupportedError:
        """Return the error to raise for a node, with its source line."""
        return self.at(describe(node), detail, [node])


DEVICE = Refusal(
    "tensor-device",
    "a tensor lives on device {detail}",
    "move the model and all its inputs to one device",
)
LAYOUT = Refusal(
    "tensor-layout",
    "a tensor has layout {detail}",
    "convert it with .to_dense() before the compiled part",
)
DTYPE = Refusal(
    "tensor-dtype",
    "a tensor has dtype {detail}",
    "cast to a real dtype outside the compiled part",
)
SUBCLASS = Refusal(
    "tensor-subclass",
    "an input is a {detail}",
    "pass plain tensors or parameters",
)
LAZY_BITS = Refusal(
    "tensor-lazy-bits",
    "an input has its lazy conjugate or negative bit set",
    "call .resolve_conj() or .resolve_neg() before the compiled part",
)
LAZY_RESULT = Refusal(
    "output-lazy-bits",
    "an output has its lazy conjugate or negative bit set",
    "return .resolve_conj() or .resolve_neg() of it",
)
NODE_KIND = Refusal(
    "graph-node-kind",
    "the graph calls {detail}, which is no operator on tensors",
    "pass a graph whose nodes call torch functions and tensor methods",
)
DATA_DEPENDENT = Refusal(
    "data-dependent-shape",
    "the result of {detail} depends on the values of tensors",
    "move the operator out of the compiled part",
)
GRAPH_RUN = Refusal(
    "graph-not-runnable",
    "the graph does not run on tensors without data: {detail}",
    "run it eagerly; the operator may have no shape function",
)
OTHER_DTYPE = Refusal(
    "other-dtype",
    "a run on tensors without data has elements of {detail} as in the captured run",
    "nothing: torch runs the operator, and the rest is compiled",
)
HIDDEN_MUTATION = Refusal(
    "hidden-mutation",
    "{detail} writes to a tensor in a way that cannot be made functional",
    "use the out-of-place form of the operator",
)
ALIASED_MUTATION = Refusal(
    "aliased-mutation",
    "the graph writes to an input that shares memory with another input",
    "pass a copy of one of the two",
)
OVERLAPPING_MUTATION = Refusal(
    "overlapping-mutation",
    "the graph writes to a tensor that has several elements at one place",
    "write to a copy, .clone() or .contiguous()",
)
INPUT_METADATA = Refusal(
    "input-metadata-mutation",
    "the graph changes the shape, strides or storage of an input",
    "return the changed tensor in place of changing the input",
)
VIEW_STRIDES = Refusal(
    "output-view-strides",
    "an output that shares memory has other strides in eager than a run without data"
    " gives it",
    "return a copy of it",
)
UNKNOWN_STRIDES = Refusal(
    "output-strides",
    "which strides an output has in eager is not known: the captured run, with other"
    " sizes, laid it out otherwise than a run without data does",
    "make the inputs, or the output, contiguous",
)
VIEW_DTYPE = Refusal(
    "output-view-dtype",
    "an output shares memory with a tensor of another dtype",
    "return a copy of it",
)
RANDOM_ORDER = Refusal(
    "random-order",
    "random numbers would not be drawn in the order of the tensor's memory",
    "make the tensor contiguous first",
)
RUNS_THROUGH_TORCH = Refusal(
    "control-external",
    "torch runs {detail}, which a branch or loop in native code cannot",
    "nothing: parts between tests are compiled, Python decides between them",
)
STORAGE_READ = Refusal(
    "storage-read",
    "{detail} reads memory beyond the elements of its operand",
    "index the tensor that owns the memory",
)


def recorded_name(node: fx.Node) -> str:
    """Return the name of the node of the recorded graph that a node comes from."""
    name: str = node.meta.get(RECORDED, node.name)
    return name


def places(node: fx.Node) -> list[str]:
    """Return the user's files and lines behind a node, as "file:line".

    Callers come before what they call. There are none where nothing is known.
    """
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    return [f"{file}:{line}" for file, line in frames]


def begin_of(graph: fx.Graph) -> str:
    """Return the first "file:line" of an operator outside of torch, "" for none."""
    every = itertools.chain.from_iterable(map(places, graph.nodes))
    return next((place for place in every if not place.startswith(_TORCH)), "")


def describe(node: fx.Node) -> str:
    """Return a node's name with the user's file and line where it is known."""
    found = places(node)
    return f"node '{node.name}' ({found[-1]})" if found else f"node '{node.name}'"
