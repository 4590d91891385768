"""Owns the call of a graph that needs gradients: an autograd node for each stage."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.autograd.grad_mode import _unsafe_preserve_version_counter
from torch.autograd.graph import increment_version
from torch.utils._python_dispatch import _disable_current_modes

from magweld.frontend.operators.watch import OperatorWatch
from magweld.importer.epilogue import as_created, set_versions
from magweld.importer.observation import GraphRunner
from magweld.kept import KeptByRecords
from magweld.reports import joined_reports, joined_texts
from magweld.short_repr import short_repr
from magweld.tiers import TieredGraph, tier_of
from magweld.training.again import check_not_shared, is_freed
from magweld.training.backward import BackwardStage
from magweld.training.joint import Halves
from magweld.training.observation import (
    Form,
    InputItself,
    InputView,
    Output,
    TrainingFacts,
    Value,
    ValueView,
    run_with_gradients,
    stand_ins,
)
from magweld.training.stages import stand_in


@dataclass(frozen=True)
class TrainingGraph(KeptByRecords):
    """A captured graph that needs gradients; call it with the graph's inputs.

    Attributes:
        reference: Runs the captured graph, for what the halves do not do.
        facts: What eager torch does with it.
        halves: The graphs of both halves.
        forward: The compiled forward half.
        backward: The stages of the backward half, compiled when they first run.
    """

    __repr__ = short_repr

    reference: Callable[..., Any]
    facts: TrainingFacts
    halves: Halves
    forward: Callable[..., Any]
    backward: tuple[BackwardStage, ...]

    def __call__(self, *inputs: Tensor) -> Any:
        """Run the graph; gradients flow through the results as in eager torch."""
        if forward_ad._current_level >= 0 or _transforms_active():
            return self.reference(*inputs)
        if top_hooks(True) is not None:
            # They are to see what eager torch keeps, in its order.
            return self.reference(*inputs)
        if self.tiered is not None and self.tiered.runs_through_torch:
            self.tiered.note_torch_call()
            return self.reference(*inputs)
        values = self._run(inputs)
        return tuple(_make(output, inputs, values) for output in self.facts.outputs)

    def _run(self, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the computed outputs, with their autograd nodes."""
        facts, count = self.facts, len(self.facts.values)
        with torch.no_grad():
            state = _State.of(facts, inputs)
            made = list(self.forward(*inputs))
            _write(facts, inputs, made[count:])
            dense = _place(facts.values, made)
            made[:count] = map(_no_view, made[:count])
            # Before autograd keeps some of them, with their versions.
            set_versions(made, facts.versions)
        passed: dict[int, Tensor] = {}
        kinds: dict[str, Any] = {"input": inputs, "result": made, "passed": passed}
        for number, stage in enumerate(self.halves.stages):
            sources = [kinds[kind][n] for kind, n in (*stage.ends, *stage.behind)]
            outputs = iter(_apply(self, number, state, made, dense, *sources))
            for n in stage.values:
                output = next(outputs)
                made[n] = output if stage.is_single else _gate(made, n, output)
            for gradient in stage.received:
                passed[gradient.number] = next(outputs)
        for n, form in enumerate(facts.values):
            if form.creation:
                made[n] = as_created(made[n], form.creation)
        return made[:count]

    @property
    def tiered(self) -> TieredGraph | None:
        """The forward half if torch may run it."""
        return tier_of(self.forward)

    @property
    def is_decided(self) -> bool:
        """Whether it is known what runs the halves that calls have needed so far.

        A program that infers with gradients never needs the backward half, which may be
        compiled ahead.
        """
        first = self.tiered
        if first is not None and (not first.is_decided or first.compiled is None):
            return first.is_decided  # torch runs the graph as a whole, or may yet
        needed = (stage.compiled.values() for stage in self.backward if stage.has_run)
        tiers = map(tier_of, itertools.chain.from_iterable(needed))
        return all(tier is None or tier.is_decided for tier in tiers)

    def report(self) -> dict[str, Any]:
        """Return fused groups and what runs in torch, of the halves compiled so far."""
        return joined_reports(self._compiled())

    def _compiled(self) -> tuple[Callable[..., Any], ...]:
        backward = (half for one in self.backward for half in one.compiled.values())
        return (self.forward, *backward)

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
        case InputView(number, window, detached, creation):
            source = inputs[number]
            whole = source.detach() if detached else source
            view = whole if window is None else window.of(whole)
            return as_created(view, creation) if creation else view
        case ValueView(number, window, counted, creation):
            whole = values[number].detach() if counted else values[number].data
            view = whole if window is None else window.of(whole)
            return as_created(view, creation) if creation else view


class _Stage(torch.autograd.Function):
    """The autograd node of a stage of one call.

    Its outputs are results of the call, which have been computed before, and what
    stands for the gradients that other stages pass to it.
    """

    @staticmethod
    def forward(
        ctx: Any,
        graph: TrainingGraph,
        number: int,
        state: _State,
        made: Sequence[Tensor],
        dense: Mapping[int, Tensor],
        *sources: Tensor,
    ) -> Any:
        """Keep what the stage needs."""
        stage = graph.halves.stages[number]
        ctx.set_materialize_grads(False)
        ctx.graph = graph
        ctx.number = number
        ctx.state = state
        ctx.done = []
        if stage.results:
            ctx.state = state.and_results([made[n] for n in stage.results])
        count, own = len(graph.facts.values), stage.values if stage.is_single else ()

        def shown(n: int) -> Tensor:
            # A node must not keep the results of those that lead to it.
            return made[n] if n >= count or n in own else made[n].detach()

        kept = [
            state.inputs[n] if kind == "input" else dense[n] if n in dense else shown(n)
            for kind, n in stage.saved
        ]
        # What is written to these is noticed, as with those that are kept themselves.
        kept += [shown(n) for kind, n in stage.saved if kind == "result" and n in dense]
        # By what is kept a further backward is noticed, which eager torch may refuse.
        ctx.save_for_backward(*(kept or [torch.empty(0)]))
        received = (stand_in(gradient) for gradient in stage.received)
        if stage.is_single:
            return (*(made[n] for n in own), *received)
        forms = graph.facts.values
        return (*(stand_in(forms[n]) for n in stage.values), *received)

    @staticmethod
    def backward(ctx: Any, *tangents: Tensor | None) -> Any:
        """Return the gradients of what the stage follows from."""
        return (*[None] * 5, *_gradients(ctx, tangents))


_apply: Callable[..., tuple[Tensor, ...]] = _Stage.apply


class _Gate(torch.autograd.Function):
    """The node of a result that shares the one of its stage with other results.

    Autograd calls all hooks on the results of a node that it runs.
    """

    @staticmethod
    def forward(ctx: Any, made: Sequence[Tensor], number: int, source: Tensor) -> Any:
        """Return the result."""
        ctx.set_materialize_grads(False)
        return made[number]

    @staticmethod
    def backward(ctx: Any, *tangents: Tensor | None) -> Any:
        """Return the gradient of the result."""
        return (None, None, *tangents)


_gate: Callable[..., Tensor] = _Gate.apply


def _gradients(ctx: Any, tangents: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
    """Return gradients for `ends` of a stage, then for what is behind it."""
    graph: TrainingGraph = ctx.graph
    stage = graph.halves.stages[ctx.number]
    if all(tangent is None for tangent in tangents):
        return [None] * len((*stage.ends, *stage.behind))
    freed: RuntimeError | None = None
    saved: Sequence[Tensor] = ()
    try:
        saved = ctx.saved_tensors[: len(stage.saved)]
    except RuntimeError as error:
        if not is_freed(error):
            raise
        freed = error
    else:
        # What ran before has kept everything.
        ctx.done.clear()
    given, received = tangents[: len(stage.values)], tangents[len(stage.values) :]
    before = list(ctx.done)
    now = [n for n, tangent in enumerate(given) if tangent is not None]
    ctx.done += now
    is_alone = all(tangent is None for tangent in received)
    if freed is not None and not stage.saved:
        _check_again(ctx, before, now)
        freed = None
    if freed is not None and not is_alone:
        raise freed
    seen = _is_seen_by_torch(given)
    found: list[Tensor | None] = [None] * len((*stage.ends, *stage.behind))
    if seen or (is_alone and (freed is not None or torch.is_grad_enabled())):
        found = _through_torch(ctx, given, before, torch.is_grad_enabled())
        tangents = (*[None] * len(given), *received)
        if is_alone:
            return found
    gradients = graph.backward[ctx.number](saved, tangents)
    return list(map(_sum, [*gradients, *[None] * len(stage.behind)], found))


def _sum(left: Tensor | None, right: Tensor | None) -> Tensor | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right


def _is_seen_by_torch(tangents: Sequence[Tensor | None]) -> bool:
    """Return whether compiled code cannot take tangents, or a mode sees operators.

    Tangents may be sparse, of a class of the user's, or many at once, as with
    `is_grads_batched`. Autocast makes operators of a backward run in another type.
    """
    given = [tangent for tangent in tangents if tangent is not None]
    if not given:
        return False
    if torch._C._len_torch_dispatch_stack() or torch.is_autocast_enabled("cpu"):
        return True
    return not all(map(_is_plain, given))


def _is_plain(tensor: Tensor) -> bool:
    keys = torch._C._dispatch_keys(tensor).raw_repr()
    return type(tensor) is Tensor and keys in _plain_keys(tensor.device.type)


@functools.cache
def _plain_keys(device: str) -> frozenset[int]:
    """Return the sets of dispatch keys of tensors that are nothing but their memory."""
    with _disable_current_modes():
        plain = [torch.empty(0, device=device)]
        with torch.inference_mode():
            plain.append(torch.empty(0, device=device))
    return frozenset(torch._C._dispatch_keys(tensor).raw_repr() for tensor in plain)


@dataclass(frozen=True)
class _State:
    """What a second forward run needs, if gradients are to be differentiated.

    Attributes:
        inputs: The inputs of the call, with copies of those that were written, and
            results of it that further ones follow from.
        versions: Their versions.
        random: State of the generator, None where nothing was drawn.
    """

    inputs: tuple[Tensor, ...]
    versions: tuple[int, ...]
    random: Tensor | None

    @staticmethod
    def of(facts: TrainingFacts, inputs: Sequence[Tensor]) -> _State:
        """Return the state before a call."""
        if facts.written:
            copied = list(inputs)
            for number in facts.written:
                copied[number] = inputs[number].clone()
            inputs = copied
        random = torch.get_rng_state() if facts.draws else None
        return _State(tuple(inputs), tuple(x._version for x in inputs), random)

    def and_results(self, results: Sequence[Tensor]) -> _State:
        """Return the state behind some results of the call."""
        versions = (*self.versions, *(result._version for result in results))
        return _State((*self.inputs, *results), versions, self.random)


def _place(forms: Sequence[Form], made: list[Tensor]) -> dict[int, Tensor]:
    """Put results where eager has them in their memory; return what they were."""
    moved = [n for n, form in enumerate(forms) if not form.is_all_memory]
    dense = {n: made[n] for n in moved}
    for n in moved:
        made[n] = forms[n].placed(made[n])
    return dense


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
    for number, count in facts.further:
        increment_version([inputs[number]] * count)


@torch.enable_grad()
def _through_torch(
    ctx: Any,
    tangents: Sequence[Tensor | None],
    before: Sequence[int],
    differentiable: bool,
) -> list[Tensor | None]:
    """Return gradients: torch runs the graph once more.

    Args:
        ctx: The node of a stage.
        tangents: Of the results of the stage.
        before: Numbers of those whose backward has freed what was kept.
        differentiable: Whether the gradients shall have gradients.

    Raises:
        RuntimeError: An input was changed in the meantime, or eager torch would not
            have kept what is needed.
    """
    facts: TrainingFacts = ctx.graph.facts
    halves: Halves = ctx.graph.halves
    state: _State = ctx.state
    stage = halves.stages[ctx.number]
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
    outside = [tensor.grad_fn for tensor in inputs if tensor.grad_fn is not None]
    for number in facts.written:
        inputs[number] = inputs[number].clone()
    with _random_state(state.random), _without_modes():
        results = halves.references[ctx.number](*inputs)
    values = [results[facts.values[number].position] for number in stage.values]
    now = [n for n, tangent in enumerate(tangents) if tangent is not None]
    check_not_shared(values, before, now, outside)
    own = len(inputs) - len(stage.results)
    sources = dict(zip(stage.results, inputs[own:], strict=True))
    leaves = {
        (kind, n): inputs[n] if kind == "input" else sources[n]
        for kind, n in stage.leaves
    }
    gradients = torch.autograd.grad(
        [values[n] for n in now],
        list(leaves.values()),
        [tangent for tangent in tangents if tangent is not None],
        create_graph=differentiable,
        allow_unused=True,
    )
    found = dict(zip(leaves, gradients, strict=True))
    # What it passes on goes to the leaves behind at once.
    return [found.get(end) for end in (*stage.ends, *stage.behind)]


def _check_again(ctx: Any, before: Sequence[int], now: Sequence[int]) -> None:
    """Raise if eager torch keeps for a further backward what this graph does without.

    Args:
        ctx: The node of a stage that keeps no tensors.
        before: Numbers of the results of the stage that a backward has begun from.
        now: Numbers of those that it begins from now.
    """
    facts, stage = ctx.graph.facts, ctx.graph.halves.stages[ctx.number]
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with _without_modes():
        results = run_with_gradients(
            GraphRunner(ctx.graph.halves.references[ctx.number]),
            mode,
            OperatorWatch(),
            stand_ins(mode, ctx.state.inputs),
        )
    values = [results[facts.values[number].position] for number in stage.values]
    check_not_shared(values, before, now, ())


def _alias(tensor: Tensor) -> Tensor:
    # Hooks of the input itself are for the gradient that is returned.
    return tensor.view_as(tensor) if tensor.requires_grad else tensor


@contextlib.contextmanager
def _without_modes() -> Iterator[None]:
    """Run operators of the forward half outside of what is there for the backward."""
    off = torch.autocast("cpu", enabled=False)
    with off, _disable_current_modes(), temporarily_clear_interpreter_stack():
        # What `is_grads_batched` counts forbids random operators.
        depth = torch._C._vmapmode_increment_nesting()
        for _ in range(depth):
            torch._C._vmapmode_decrement_nesting()
        try:
            yield
        finally:
            for _ in range(depth - 1):
                torch._C._vmapmode_increment_nesting()


@contextlib.contextmanager
def _random_state(state: Tensor | None) -> Any:
    if state is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(state)
        yield
