"""Owns the call of a graph that needs gradients: both halves in an autograd node."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx
from torch.autograd import forward_ad
from torch.autograd.grad_mode import _unsafe_preserve_version_counter

from magweld.reports import joined_reports, joined_texts
from magweld.short_repr import short_repr
from magweld.tiers import TieredGraph, tier_of
from magweld.training.again import check_not_shared, is_freed
from magweld.training.backward import BackwardHalf
from magweld.training.joint import Halves
from magweld.training.observation import (
    InputItself,
    InputView,
    Output,
    TrainingFacts,
    Value,
)


@dataclass(frozen=True)
class TrainingGraph:
    """A captured graph that needs gradients; call it with the graph's inputs.

    Attributes:
        reference: The captured graph, for what the halves do not do.
        facts: What eager torch does with it.
        halves: The graphs of both halves.
        forward: The compiled forward half.
        backward: The backward half, compiled when it first runs.
    """

    __repr__ = short_repr

    reference: fx.GraphModule
    facts: TrainingFacts
    halves: Halves
    forward: Callable[..., Any]
    backward: BackwardHalf

    def __call__(self, *inputs: Tensor) -> Any:
        """Run the graph; gradients flow through the results as in eager torch."""
        if forward_ad._current_level >= 0 or _transforms_active():
            return self.reference(*inputs)
        if top_hooks(True) is not None:
            # They are to see what eager torch keeps, in its order.
            return self.reference(*inputs)
        if self.tiered is not None and self.tiered.runs_through_torch:
            self.tiered.torch_calls += 1
            return self.reference(*inputs)
        values = _apply(self, *inputs)
        return tuple(_make(output, inputs, values) for output in self.facts.outputs)

    @property
    def tiered(self) -> TieredGraph | None:
        """The forward half if torch may run it."""
        return tier_of(self.forward)

    @property
    def is_decided(self) -> bool:
        """Whether it is known what runs the halves that have been compiled so far."""
        first, *others = map(tier_of, self._compiled())
        if first is not None and (not first.is_decided or first.compiled is None):
            return first.is_decided  # torch runs the graph as a whole, or may yet
        return all(tier is None or tier.is_decided for tier in others)

    def report(self) -> dict[str, Any]:
        """Return fused groups and what runs in torch, of the halves compiled so far."""
        return joined_reports(self._compiled())

    def _compiled(self) -> tuple[Callable[..., Any], ...]:
        return (self.forward, *self.backward.compiled.values())

    def mlir(self, stage: str) -> str:
        """Return the modules of the halves that are compiled, at a stage.

        Raises:
            ValueError: Neither half has such a stage.
        """
        text = joined_texts(self._compiled(), stage)
        if not text:
            raise ValueError("both halves run through torch, they have no MLIR stages")
        return text


top_hooks: Callable[[bool], tuple[Any, Any] | None] = (
    torch._C._autograd._top_saved_tensors_default_hooks
)
"""Returns the innermost hooks on tensors that autograd keeps, None without any."""

_transforms_active: Callable[[], bool] = torch._C._are_functorch_transforms_active


def _make(output: Output, inputs: Sequence[Tensor], values: Sequence[Tensor]) -> Tensor:
    match output:
        case Value(number):
            return values[number]
        case InputItself(number):
            return inputs[number]
        case InputView(number, window, detached):
            source = inputs[number]
            return window.of(source.detach() if detached else source)


class _Halves(torch.autograd.Function):
    """The autograd node of one call."""

    @staticmethod
    def forward(ctx: Any, graph: TrainingGraph, *inputs: Tensor) -> Any:
        """Run the forward half and keep what the backward half needs."""
        facts = graph.facts
        ctx.set_materialize_grads(False)
        ctx.graph = graph
        ctx.state = _State.of(facts, inputs)
        ctx.done = []
        results = graph.forward(*inputs)
        count = len(facts.values)
        _write(facts, inputs, results[count:])
        values = tuple(_no_view(result) for result in results[:count])
        before, made = ctx.state.inputs, (*values, *results[count:])
        ctx.save_for_backward(
            *(
                before[number] if kind == "input" else made[number]
                for kind, number in graph.halves.saved
            )
        )
        ctx.mark_non_differentiable(
            *(
                value
                for value, form in zip(values, facts.values, strict=True)
                if not form.differentiable
            )
        )
        return values

    @staticmethod
    def backward(ctx: Any, *tangents: Tensor | None) -> Any:
        """Return the gradients of the inputs."""
        graph: TrainingGraph = ctx.graph
        given = [
            tangent
            for tangent, form in zip(tangents, graph.facts.values, strict=True)
            if form.differentiable
        ]
        try:
            saved = ctx.saved_tensors
        except RuntimeError as error:
            if not is_freed(error):
                raise
            saved = None
        else:
            # What ran before has kept everything.
            ctx.done.clear()
        before = list(ctx.done)
        ctx.done += [n for n, tangent in enumerate(given) if tangent is not None]
        if torch.is_grad_enabled():
            return (None, *_through_torch(graph, ctx.state, given, before, True))
        if saved is None:
            return (None, *_through_torch(graph, ctx.state, given, before, False))
        return (None, *graph.backward(saved, given))


_apply: Callable[..., tuple[Tensor, ...]] = _Halves.apply


@dataclass(frozen=True)
class _State:
    """What a second forward run needs, if gradients are to be differentiated.

    Attributes:
        inputs: The inputs of the call, with copies of those that were written.
        versions: Their versions.
        random: State of the generator, None where nothing was drawn.
    """

    inputs: tuple[Tensor, ...]
    versions: tuple[int, ...]
    random: Tensor | None

    @staticmethod
    def of(facts: TrainingFacts, inputs: tuple[Tensor, ...]) -> _State:
        """Return the state before a call."""
        if facts.written:
            copied = list(inputs)
            for number in facts.written:
                copied[number] = inputs[number].clone()
            inputs = tuple(copied)
        random = torch.get_rng_state() if facts.draws else None
        return _State(inputs, tuple(x._version for x in inputs), random)


def _no_view(result: Tensor) -> Tensor:
    """Return a result as a tensor of its own, with its memory and its version.

    Autograd forbids in-place operators on views that leave a custom function.
    """
    return result.detach() if result._is_view() else result


def _write(
    facts: TrainingFacts, inputs: Sequence[Tensor], values: Sequence[Tensor]
) -> None:
    for number, value in zip(facts.written, values, strict=False):
        target = inputs[number]
        if number in facts.silently:
            # Another run may have kept it for a backward that does not read it.
            with _unsafe_preserve_version_counter(target):
                target.copy_(value)
        else:
            target.copy_(value)


@torch.enable_grad()
def _through_torch(
    graph: TrainingGraph,
    state: _State,
    tangents: Sequence[Tensor | None],
    before: Sequence[int],
    differentiable: bool,
) -> list[Tensor | None]:
    """Return gradients: torch runs the graph once more.

    Args:
        graph: The graph.
        state: The state before the call.
        tangents: Of the results that can be differentiated.
        before: Numbers of those whose backward has freed what was kept.
        differentiable: Whether the gradients shall have gradients.

    Raises:
        RuntimeError: An input was changed in the meantime, or eager torch would not
            have kept what is needed.
    """
    for number, (tensor, version) in enumerate(
        zip(state.inputs, state.versions, strict=True)
    ):
        if tensor._version != version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified"
                f" by an inplace operation: input {number} of a traced call is at"
                f" version {tensor._version}; expected version {version} instead"
            )
    inputs = [_alias(tensor) for tensor in state.inputs]
    for number in graph.facts.written:
        inputs[number] = inputs[number].clone()
    with _random_state(state.random):
        results = graph.reference(*inputs)
    forms = [form for form in graph.facts.values if form.differentiable]
    values = [results[form.position] for form in forms]
    now = [n for n, tangent in enumerate(tangents) if tangent is not None]
    check_not_shared(values, before, now)
    pairs = [
        (results[form.position], tangent)
        for form, tangent in zip(forms, tangents, strict=True)
        if tangent is not None
    ]
    sources = [tensor for tensor in inputs if tensor.requires_grad]
    gradients = iter(
        torch.autograd.grad(
            [result for result, _ in pairs],
            sources,
            [tangent for _, tangent in pairs],
            create_graph=differentiable,
            allow_unused=True,
        )
    )
    return [next(gradients) if x.requires_grad else None for x in inputs]


def _alias(tensor: Tensor) -> Tensor:
    # Hooks of the input itself are for the gradient that is returned.
    return tensor.view_as(tensor) if tensor.requires_grad else tensor


@contextlib.contextmanager
def _random_state(state: Tensor | None) -> Any:
    if state is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(state)
        yield
