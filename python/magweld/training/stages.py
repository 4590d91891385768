"""Owns the stages of a backward half: which autograd node runs which operators.

There is one stage where no result follows from another and all lead to the same inputs.
Else a backward from some of them must not come to the other inputs: autograd runs all
that is behind a node. A result that others follow from has a stage of its own, so that
its hooks run between what makes its gradient and what reads it. Operators are in one
stage if the same results lead a backward to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import torch
from torch import Tensor, fx

from magweld.importer.nodes import output_of, placeholders, results_of, values_of
from magweld.training import refusals
from magweld.training.cut import Saved, separate
from magweld.training.observation import Form

Key = frozenset[int]
End = tuple[str, int]

# Each one is compiled for itself.
_MAX_STAGES: Final = 32


@dataclass(frozen=True)
class Passed:
    """A gradient that one stage passes to another.

    Attributes:
        number: Its own.
        shape: Its shape, as of the others.
        dtype: Its dtype.
        device: Where it is.
    """

    number: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


def stand_in(form: Form | Passed) -> Tensor:
    """Return a tensor without elements in memory, whose gradient has a form."""
    strides = [0] * len(form.shape)
    return torch.empty_strided(
        form.shape, strides, dtype=form.dtype, device=form.device
    )


@dataclass(frozen=True)
class Stage:
    """A part of a backward half.

    Attributes:
        graph: Takes what `saved` names, then a gradient for each of `values` and
            `received`; returns a gradient for each of `ends`.
        saved: As of the whole half.
        tangents: Names of the graph's placeholders for gradients.
        values: Numbers of the computed outputs whose gradients it takes.
        received: The gradients that it takes from other stages.
        ends: What it makes gradients for: ("input", position), ("result", number of
            a computed output) or ("passed", number of a gradient that it passes on).
        behind: Inputs and results that get gradients from what it passes on.
    """

    graph: fx.GraphModule
    saved: Saved
    tangents: tuple[str, ...]
    values: tuple[int, ...]
    received: tuple[Passed, ...]
    ends: tuple[End, ...]
    behind: tuple[End, ...]

    @cached_property
    def is_single(self) -> bool:
        """Whether it takes the gradient of one result at most."""
        return len(self.values) < 2

    @cached_property
    def leaves(self) -> tuple[End, ...]:
        """Inputs and results that get gradients from it and from what is behind."""
        return tuple(e for e in (*self.ends, *self.behind) if e[0] != "passed")

    @cached_property
    def results(self) -> tuple[int, ...]:
        """Numbers of the results among them."""
        return tuple(number for kind, number in self.leaves if kind == "result")


def split(
    backward: fx.GraphModule,
    saved: Saved,
    tangents: Mapping[str, int],
    inputs: int,
    intermediates: Sequence[int],
) -> tuple[Stage, ...]:
    """Split a backward half into stages.

    Args:
        backward: Takes what `saved` names, then tangents; returns gradients or None
            for each input, then for each intermediate output.
        saved: What it takes first.
        tangents: Number of the computed output for each placeholder for tangents.
        inputs: How many inputs there are.
        intermediates: Numbers of the computed outputs that others follow from.

    Returns:
        The stages in the order of their autograd nodes.

    Raises:
        UnsupportedError: There are too many, or a gradient depends on none of them.
    """
    ends: list[End] = [("input", n) for n in range(inputs)]
    ends += [("result", number) for number in intermediates]
    leaves = zip(ends, results_of(backward.graph), strict=True)
    gradients = {end: node for end, node in leaves if isinstance(node, fx.Node)}
    if not gradients:
        raise refusals.JOINT.at("the graph", "no input gets a gradient")
    splitter = _Splitter(backward, saved, tangents, gradients, intermediates)
    if splitter.is_whole:
        return (_whole(backward, saved, tangents, gradients),)
    return splitter.stages()


def _whole(
    backward: fx.GraphModule,
    saved: Saved,
    tangents: Mapping[str, int],
    gradients: Mapping[End, fx.Node],
) -> Stage:
    output_of(backward.graph).args = (tuple(gradients.values()),)
    backward.recompile()
    values = tuple(tangents.values())
    return Stage(backward, saved, tuple(tangents), values, (), tuple(gradients), ())


class _Splitter:
    """Finds the stages of a backward half that has several.

    Attributes:
        is_whole: Whether one stage is enough.
    """

    def __init__(
        self,
        backward: fx.GraphModule,
        saved: Saved,
        tangents: Mapping[str, int],
        gradients: Mapping[End, fx.Node],
        intermediates: Sequence[int],
    ) -> None:
        self._backward = backward
        self._gradients = gradients
        self._intermediates = intermediates
        arguments = placeholders(backward.graph)
        self._saved = dict(zip(arguments, saved, strict=False))
        self._tangents = {
            node: tangents[node.name] for node in arguments if node.name in tangents
        }
        leading = self._propagate(self._find_leading())
        groups = self._find_groups(leading)
        self.is_whole = not intermediates and len({*groups.values()}) < 2
        self._refusal = refusals.INTERMEDIATE if intermediates else refusals.PARTS
        self._keys = {
            node: frozenset(groups[number] for number in key)
            for node, key in leading.items()
        }
        # A number for each gradient that leaves its stage, and for who receives it.
        self._passed: dict[tuple[fx.Node, Key], int] = {}
        for node, key in self._keys.items():
            for operand in node.all_input_nodes:
                if self._keys.get(operand, key) != key:
                    self._passed.setdefault((operand, key), len(self._passed))

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages; each one follows those that it passes gradients to.

        Raises:
            UnsupportedError: See `split`.
        """
        # More results lead to what a gradient is passed to, and to an earlier result.
        keys = sorted(dict.fromkeys(self._keys.values()), key=len, reverse=True)
        if len(keys) > _MAX_STAGES:
            detail = f"and there are {len(keys)} parts of the backward half"
            raise self._refusal.at("the graph's outputs", detail)
        if any(node not in self._keys for node in self._gradients.values()):
            detail = "and a gradient is a constant"
            raise self._refusal.at("the graph's outputs", detail)
        made: dict[Key, Stage] = {}
        for key in keys:
            made[key] = self._stage(key, made)
        return tuple(made.values())

    def _find_leading(self) -> dict[int, Key]:
        """Return for each result which ones lead a backward to it, and itself."""
        leading = {number: frozenset({number}) for number in self._tangents.values()}
        while True:
            keys = self._propagate(leading)
            found = dict(leading)
            for number in self._intermediates:
                gradient = self._gradients.get(("result", number))
                if gradient is not None:
                    found[number] |= keys.get(gradient, frozenset())
            if found == leading:
                return found
            leading = found

    def _propagate(self, leading: Mapping[int, Key]) -> dict[fx.Node, Key]:
        """Return for each operator on gradients which results lead a backward to it."""
        keys = {node: leading[number] for node, number in self._tangents.items()}
        for node in self._backward.graph.nodes:
            known = [keys[x] for x in node.all_input_nodes if x in keys]
            if known and node.op == "call_function":
                keys[node] = frozenset[int]().union(*known)
        return keys

    def _find_groups(self, leading: Mapping[fx.Node, Key]) -> dict[int, int]:
        """Return for each result the first one of those that share its node.

        They are the ones that no other follows from and that lead to the same inputs
        and intermediate results.

        Args:
            leading: See `_propagate`.
        """
        groups: dict[int, int] = {}
        firsts: dict[frozenset[End], int] = {}
        for number in self._tangents.values():
            if number in self._intermediates:
                groups[number] = number
                continue
            led = frozenset(
                end
                for end, node in self._gradients.items()
                if number in leading.get(node, ())
            )
            groups[number] = firsts.setdefault(led, number)
        return groups

    def _stage(self, key: Key, made: Mapping[Key, Stage]) -> Stage:
        ends = {
            end: node
            for end, node in self._gradients.items()
            if self._keys[node] == key
        }
        behind: dict[End, None] = {}
        received: dict[fx.Node, int] = {}
        for (node, receiver), number in self._passed.items():
            if self._keys[node] == key:
                ends["passed", number] = node
                behind.update(dict.fromkeys(made[receiver].leaves))
            if receiver == key:
                received[node] = number
        if not ends:
            detail = "and gets no gradient from it"
            raise self._refusal.at("the graph's outputs", detail)
        graph, saved = self._graph(key, list(ends.values()), received)
        values = [n for node, n in self._tangents.items() if self._keys[node] == key]
        return Stage(
            graph,
            saved,
            tuple(node.name for node in placeholders(graph.graph)[len(saved) :]),
            tuple(values),
            tuple(self._passed_on(number, n) for n, number in received.items()),
            tuple(ends),
            tuple(end for end in behind if end not in ends),
        )

    def _graph(
        self, key: Key, results: Sequence[fx.Node], received: Mapping[fx.Node, int]
    ) -> tuple[fx.GraphModule, Saved]:
        """Return the graph of a stage, and what it takes first."""
        needed: set[fx.Node] = set()
        work = list(results)
        while work:
            node = work.pop()
            if node not in needed:
                needed.add(node)
                work += [] if node in received else node.all_input_nodes
        graph = fx.Graph()
        saved = {node: at for node, at in self._saved.items() if node in needed}
        tangents = [node for node in self._tangents if self._keys[node] == key]
        copies = {node: graph.node_copy(node) for node in (*saved, *tangents)}
        for node, number in received.items():
            copies[node] = graph.placeholder(f"tangents_passed_{number}")
            copies[node].meta = dict(node.meta)
        for node in self._backward.graph.nodes:
            if node in needed and node not in copies:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies[node] for node in results))
        module = fx.GraphModule(self._backward, graph)
        separate(module, may_repeat=True)
        return module, tuple(saved.values())

    def _passed_on(self, number: int, node: fx.Node) -> Passed:
        value = values_of(node)
        dtype = value.dtype if isinstance(value, Tensor) else torch.int64
        if not (dtype.is_floating_point or dtype.is_complex):
            detail = f"and {node.name} follows from the gradients of both"
            raise self._refusal.at("the graph's outputs", detail)
        return Passed(number, tuple(value.shape), value.dtype, value.device)
