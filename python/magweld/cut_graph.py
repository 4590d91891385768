"""Owns graphs of which torch runs some operators; what is between them is compiled."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, fx

from magweld import env
from magweld.graphs.autocast import autocast_kept, graph_runner, switches_autocast
from magweld.graphs.forms import Forms
from magweld.graphs.gradients import switches_gradients
from magweld.graphs.pieces import piece_of
from magweld.importer.refusals import describe
from magweld.reports import joined_reports, joined_texts
from magweld.short_repr import short_repr
from magweld.storages import neighbours
from magweld.tiers import tier_of

# Fewer operators run as fast through torch.
MIN_OPERATORS: Final = 3
_PLAIN_CLASSES: Final = (Tensor, torch.nn.Parameter)

Call = Callable[..., Any]
CompilePiece = Callable[[fx.GraphModule, Sequence[Tensor]], Call]
# Names of nodes that torch runs, with the reason.
Cuts = Mapping[str, str]


class CutGraph:
    """A graph in pieces: torch runs those that the compiler does not take.

    A piece is compiled for the first form of its inputs, and for each further one that
    comes often enough: a form is known when torch has run what is before the piece.

    Args:
        graph: The graph.
        cuts: The operators that torch runs.
        compile_piece: Compiles a graph for example inputs.
    """

    __repr__ = short_repr

    def __init__(
        self, graph: fx.GraphModule, cuts: Cuts, compile_piece: CompilePiece
    ) -> None:
        nodes = list(graph.graph.nodes)
        self._described = [
            f"{describe(node)}: {cuts[node.name]}"
            for node in nodes
            if node.name in cuts
        ]
        # A piece that is compiled leaves modes of torch as they are.
        switches = (node.name for node in nodes if switches_gradients(node))
        cuts = {**cuts, **dict.fromkeys(switches, "")}
        self._inputs = [node for node in nodes if node.op == "placeholder"]
        self._result = nodes[-1].args[0]
        self._switches = switches_autocast(graph.graph)
        groups = list(_groups(nodes, cuts))
        last = _last_reads(groups, nodes[-1])
        self._steps = [
            _step(graph, group, last, cuts, compile_piece) for group in groups
        ]

    def __call__(self, *inputs: Any) -> Any:
        """Return what the graph returns."""
        values: dict[fx.Node, Any] = dict(zip(self._inputs, inputs, strict=True))
        del inputs
        if not self._switches:
            return self._run(values)
        with autocast_kept():
            return self._run(values)

    def _run(self, values: dict[fx.Node, Any]) -> Any:
        for step in self._steps:
            step.run(values)
        return fx.map_arg(self._result, values.__getitem__)

    @property
    def compiles(self) -> bool:
        """Whether anything is left to the compiler."""
        return any(isinstance(step.program, Piece) for step in self._steps)

    @property
    def held_bytes(self) -> int:
        """Bytes of the compiled pieces."""
        return sum(getattr(form, "held_bytes", 0) for form in self._forms())

    def mlir(self, stage: str) -> str:
        """Return the modules of the compiled pieces at a stage, one after another.

        Raises:
            ValueError: There is no such stage on the way to this target.
        """
        return joined_texts(self._forms(), stage)

    def report(self) -> dict[str, Any]:
        """Return the reports of the compiled pieces, joined; `cuts` are the others."""
        return {**joined_reports(self._forms()), "cuts": self._described}

    def _forms(self) -> Iterator[Any]:
        for step in self._steps:
            if isinstance(step.program, Piece):
                yield from step.program.compiled


@dataclass(frozen=True)
class _Step:
    """Some operators of a graph.

    Attributes:
        program: Runs them.
        inputs: Nodes of the values that it takes.
        outputs: Nodes of the values that it returns.
        dropped: Nodes of values that nothing reads later.
    """

    program: Call
    inputs: tuple[fx.Node, ...]
    outputs: tuple[fx.Node, ...]
    dropped: tuple[fx.Node, ...]

    def run(self, values: dict[fx.Node, Any]) -> None:
        """Compute the outputs."""
        results = self.program(*[values[node] for node in self.inputs])
        values.update(zip(self.outputs, results, strict=True))
        for node in self.dropped:
            del values[node]


class Piece:
    """Operators that are compiled for each form of their inputs.

    Args:
        graph: The operators.
        compile_piece: Compiles them for example inputs.
    """

    def __init__(self, graph: fx.GraphModule, compile_piece: CompilePiece) -> None:
        self._graph = graph
        self._by_torch = graph_runner(graph)
        self._compile = compile_piece
        self._lock = threading.Lock()
        self._forms = Forms(env.FORMS_BYTES.get())

    @property
    def compiled(self) -> list[Any]:
        """The compiled forms."""
        with self._lock:
            return self._forms.values()

    def __call__(self, *inputs: Any) -> Any:
        """Return what the operators return."""
        key = _form(inputs)
        if key is None:
            return self._by_torch(*inputs)
        with self._lock:
            program = self._forms.find(key)
            first = not self._forms.made
            wanted = program is None and (first or self._forms.is_wanted(key))
        if wanted:
            program = self._make(key, inputs)
        return (program or self._by_torch)(*inputs)

    def _make(self, key: Hashable, inputs: Sequence[Tensor]) -> Call:
        try:
            program = self._compile(self._graph, inputs)
        except Exception:
            # The compiler costs speed at most: torch runs such inputs.
            program = self._by_torch
        with self._lock:
            self._forms.add(key, program)
        tier = tier_of(program)
        if tier is not None and tier.is_pending:
            tier.on_ready = partial(self._ready, key)
        return program

    def _ready(self, key: Hashable) -> None:
        with self._lock:
            self._forms.resize(key)


def _form(inputs: Sequence[Any]) -> Hashable | None:
    """Return how inputs lie in memory; None if the compiler takes no such input."""
    if not all(type(item) in _PLAIN_CLASSES for item in inputs):
        return None
    if not all(item.layout is torch.strided for item in inputs):
        return None
    forms = tuple(
        (t.shape, t.stride(), t.dtype, t.device, t.requires_grad) for t in inputs
    )
    objects: dict[int, int] = {}
    same = tuple(objects.setdefault(id(t), number) for number, t in enumerate(inputs))
    return torch.is_grad_enabled(), forms, same, neighbours(inputs, range(len(inputs)))


def _groups(nodes: Sequence[fx.Node], cuts: Cuts) -> Iterator[list[fx.Node]]:
    """Yield runs of operators that torch runs, and of those that are compiled."""
    group: list[fx.Node] = []
    for node in nodes:
        if not node.op.startswith(("call", "get")):
            continue
        # A part of a result is taken where the result is made.
        is_part = node.target is operator.getitem and node.args[0] in group
        if group and not is_part and (node.name in cuts) != (group[0].name in cuts):
            yield group
            group = []
        group.append(node)
    if group:
        yield group


def _last_reads(
    groups: Sequence[list[fx.Node]], output: fx.Node
) -> dict[fx.Node, fx.Node | None]:
    """Return for each value the first node of the group that reads it last."""
    last: dict[fx.Node, fx.Node | None] = {}
    for group in groups:
        for node in group:
            last |= dict.fromkeys((node, *node.all_input_nodes), group[0])
    return {**last, **dict.fromkeys(output.all_input_nodes, None)}


def _step(
    graph: fx.GraphModule,
    group: list[fx.Node],
    last: Mapping[fx.Node, fx.Node | None],
    cuts: Cuts,
    compile_piece: CompilePiece,
) -> _Step:
    piece, inputs, outputs = piece_of(graph, group)
    operators = sum(node.op.startswith("call") for node in group)
    is_cut = group[0].name in cuts or operators < MIN_OPERATORS
    program = graph_runner(piece) if is_cut else Piece(piece, compile_piece)
    ended = [node for node in (*inputs, *outputs) if last.get(node) is group[0]]
    return _Step(program, inputs, outputs, tuple(ended))
