"""Owns a stage of the backward half at run time, compiled for the tangents it gets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import Tensor, fx

from magweld.importer.externals import with_strides
from magweld.importer.nodes import values_of
from magweld.tiers import tier_of
from magweld.training.cut import separate
from magweld.training.missing import without_tangents
from magweld.training.stages import Stage

CompileHalf = Callable[[fx.GraphModule, list[Tensor]], Callable[..., Any]]
Report = Callable[[Exception], None]
Pattern = tuple[bool, ...]

# Which outputs get gradients hardly ever changes; more patterns run through torch.
_MAX_COMPILED: Final = 4


class BackwardStage:
    """Gives the gradients that a stage makes for the tangents that it gets.

    A stage that the backend refuses runs through torch: nothing is raised into the
    user's `backward()` that eager torch would not raise.

    Args:
        stage: The graph.
        compile_half: What the backend does with a graph.
        report: Gets what the backend raised.
    """

    def __init__(self, stage: Stage, compile_half: CompileHalf, report: Report) -> None:
        self.compiled: dict[Pattern, Callable[..., Any]] = {}
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
        pattern = tuple(tangent is not None for tangent in tangents)
        arguments = [
            with_strides(tensor, stride)
            for tensor, stride in zip([*saved, *tangents], self._strides, strict=True)
            if tensor is not None
        ]
        run = self.compiled.get(pattern)
        if run is None:
            run = self._prepare(pattern, arguments)
        with torch.no_grad():
            gradients: Sequence[Tensor | None] = run(*arguments)
        return gradients

    def compile_ahead(self) -> None:
        """Compile the stage for all tangents."""
        placeholders = self._stage.graph.graph.find_nodes(op="placeholder")
        values = map(values_of, placeholders)
        examples = [
            torch.empty_strided(v.shape, v.stride(), dtype=v.dtype, device=v.device)
            for v in values
        ]
        self._prepare((True,) * len(self._stage.tangents), examples)

    def _prepare(self, pattern: Pattern, arguments: list[Tensor]) -> Callable[..., Any]:
        with self._lock:
            if pattern not in self.compiled:
                half = self._half(pattern)
                run: Callable[..., Any] = half.forward
                if len(self.compiled) < _MAX_COMPILED:
                    run = self._compiled(half, arguments)
                self.compiled[pattern] = run
            return self.compiled[pattern]

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
