"""Owns a stage of the backward half at run time, compiled for the tangents it gets."""

from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, fx

from magweld.importer.externals import with_strides
from magweld.importer.nodes import output_of, results_of, values_of
from magweld.tiers import tier_of
from magweld.training.cut import separate, viewed_argument
from magweld.training.missing import without_tangents
from magweld.training.stages import Stage

CompileHalf = Callable[[fx.GraphModule, list[Tensor]], Callable[..., Any]]
Report = Callable[[Exception], None]
Pattern = tuple[bool, ...]

# Which outputs get gradients hardly ever changes; more patterns run through torch.
_MAX_COMPILED: Final = 4
# Views that only autograd sees.
_ITSELF: Final = (torch.ops.aten.alias.default, torch.ops.aten.detach.default)


@dataclass(frozen=True)
class _Views:
    """Gradients that are tangents or views of them, as eager torch returns them.

    Attributes:
        graph: Takes all tangents of a stage; returns these gradients. None if there are
            none.
        places: Their positions among the gradients.
        others: How many further ones there are.
    """

    graph: fx.GraphModule | None
    places: tuple[int, ...]
    others: int

    def among(
        self, computed: Sequence[Tensor | None], tangents: Sequence[Tensor | None]
    ) -> Sequence[Tensor | None]:
        """Return all gradients.

        Args:
            computed: The other ones.
            tangents: All tangents of the stage.
        """
        if self.graph is None:
            return computed
        gradients = list(computed)
        for place, made in zip(self.places, self.graph.forward(*tangents), strict=True):
            gradients.insert(place, made)
        return gradients


def _take_views(half: fx.GraphModule, tangents: Sequence[str]) -> _Views:
    """Take gradients that are views of tangents out of a half.

    A backend would get tangents with other strides, and return other tensors.

    Args:
        half: Changed in place.
        tangents: Names of the stage's placeholders for tangents.
    """
    results = results_of(half.graph)
    viewed = {
        place: viewed_argument(result)
        for place, result in enumerate(results)
        if result is not None
    }
    uses = Counter(base for base, _ in viewed.values())
    found: dict[int, fx.Node] = {}
    graph = fx.Graph()
    copies = {name: graph.placeholder(name) for name in tangents}
    for place, (base, chain) in viewed.items():
        # Autograd gives a leaf what nobody else holds, and does not look at memory: a
        # view of what is handed on as well stays a copy.
        if base is None or base.name not in copies or (chain and uses[base] > 1):
            continue
        found[place] = copies[base.name]
        for view in reversed(chain):
            if view.target not in _ITSELF:
                taken = {view.all_input_nodes[0]: found[place]}
                found[place] = graph.node_copy(view, taken.__getitem__)
    if not found:
        return _Views(None, (), len(results))
    graph.output(tuple(found.values()))
    left = tuple(node for place, node in enumerate(results) if place not in found)
    output_of(half.graph).args = (left,)
    half.graph.eliminate_dead_code()
    half.recompile()
    return _Views(fx.GraphModule(half, graph), tuple(found), len(left))


class BackwardStage:
    """Gives the gradients that a stage makes for the tangents that it gets.

    A stage that the backend refuses runs through torch: nothing is raised into the
    user's `backward()` that eager torch would not raise.

    Args:
        stage: The graph.
        compile_half: What the backend does with a graph.
        report: Gets what the backend raised.

    Attributes:
        compiled: What the backend has made, by which tangents there are.
        has_run: Whether gradients were ever asked for.
    """

    def __init__(self, stage: Stage, compile_half: CompileHalf, report: Report) -> None:
        self.compiled: dict[Pattern, Callable[..., Any]] = {}
        self.has_run = False
        self._views: dict[Pattern, _Views] = {}
        self._stage = stage
        self._compile_half = compile_half
        self._report = report
        self._lock = threading.Lock()
        placeholders = stage.graph.graph.find_nodes(op="placeholder")
        self._strides = [tuple(values_of(node).stride()) for node in placeholders]

    def __call__(
        self, saved: Sequence[Tensor], tangents: Sequence[Tensor | None]
    ) -> Sequence[Tensor | None]:
        """Return a gradient or None for each of `Stage.ends`.

        Args:
            saved: What `Stage.saved` names.
            tangents: One for each of `Stage.tangents`, None where there is none.
        """
        self.has_run = True
        pattern = tuple(tangent is not None for tangent in tangents)
        arguments = [
            with_strides(tensor, stride)
            for tensor, stride in zip([*saved, *tangents], self._strides, strict=True)
            if tensor is not None
        ]
        views = self._views.get(pattern) or self._prepare(pattern, arguments)
        run = self.compiled.get(pattern)
        with torch.no_grad():
            computed = [None] * views.others if run is None else run(*arguments)
            return views.among(computed, tangents)

    def compile_ahead(self) -> None:
        """Compile the stage for all tangents."""
        placeholders = self._stage.graph.graph.find_nodes(op="placeholder")
        values = map(values_of, placeholders)
        examples = [
            torch.empty_strided(v.shape, v.stride(), dtype=v.dtype, device=v.device)
            for v in values
        ]
        self._prepare((True,) * len(self._stage.tangents), examples)

    def _prepare(self, pattern: Pattern, arguments: list[Tensor]) -> _Views:
        with self._lock:
            if pattern not in self._views:
                half = copy.deepcopy(self._half(pattern))
                views = _take_views(half, self._stage.tangents)
                if any(node is not None for node in results_of(half.graph)):
                    run: Callable[..., Any] = half.forward
                    if len(self.compiled) < _MAX_COMPILED:
                        run = self._compiled(half, arguments)
                    self.compiled[pattern] = run
                self._views[pattern] = views
            return self._views[pattern]

    def _half(self, pattern: Pattern) -> fx.GraphModule:
        graph, tangents = self._stage.graph, self._stage.tangents
        missing = [
            name for name, given in zip(tangents, pattern, strict=True) if not given
        ]
        if not missing:
            return graph
        half = without_tangents(graph, tangents, missing)
        separate(half, may_repeat=True)
        return half

    def _compiled(
        self, half: fx.GraphModule, arguments: list[Tensor]
    ) -> Callable[..., Any]:
        try:
            with torch.no_grad():
                compiled = self._compile_half(half, arguments)
        except Exception as error:
            self._report(error)
            return half.forward
        tier = tier_of(compiled)
        if tier is not None:
            tier.on_failure = self._report
        return compiled
