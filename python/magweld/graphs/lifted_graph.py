"""Owns how a graph with lifted values runs: by torch, or compiled for its values."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch
from torch import fx

from magweld import env
from magweld.diagnostics import MagweldError
from magweld.graphs.all_sizes import AllSizes, CompileSizes
from magweld.graphs.autocast import graph_runner
from magweld.graphs.counted_loops import with_counted_loops
from magweld.graphs.forms import COMPILE_AFTER, COMPILE_BESIDE, Forms, key_of
from magweld.graphs.known_sizes import KnownSizes
from magweld.graphs.numbers import with_inputs, without_numbers
from magweld.graphs.own_programs import (
    share_saved,
    uses_before_own,
    uses_until_paid,
)
from magweld.graphs.shared_sizes import Recorded, Sharing
from magweld.graphs.unroll import (
    MAX_ITERATIONS,
    has_loops,
    iterations_in,
    unroll,
)
from magweld.logs import topic
from magweld.reports import joined_reports
from magweld.tiers import TieredGraph, Verdict, common_verdict, tier_of

_FALLBACKS: Final = topic("fallbacks")

# Kinds of sizes that may each have a program of its own soon beside one for all sizes;
# of more, those have one to which one of so many calls belongs.
_FEW: Final = 16

Compile = Callable[[fx.GraphModule, list[torch.Tensor]], Callable[..., Any]]


@dataclass(frozen=True)
class Example:
    """Inputs of a graph with lifted values, as they were in the recorded run.

    Attributes:
        forms: Shape, strides, type and device of the tensors.
        numbers: The numbers.
    """

    forms: tuple[tuple[Any, Any, torch.dtype, torch.device], ...]
    numbers: tuple[Any, ...]

    @staticmethod
    def of(tensors: Sequence[torch.Tensor], numbers: Sequence[Any]) -> Example:
        """Return the forms of some tensors, which are not kept."""
        forms = ((t.shape, t.stride(), t.dtype, t.device) for t in tensors)
        return Example(tuple(forms), tuple(numbers))

    def tensors(self) -> list[torch.Tensor]:
        """Return tensors of these forms."""
        return [
            torch.empty_strided(shape, stride, dtype=dtype, device=device).zero_()
            for shape, stride, dtype, device in self.forms
        ]


class LiftedGraph:
    """Runs the graph of a record with lifted values.

    Attributes:
        module: The graph; takes tensors, then numbers.
        compiled: How many sets of values have a compiled form.
        forms: These.
        seconds: Time spent compiling.
        through_torch: How many calls torch has answered.
        was_final: Whether further calls with the values of the last one, or with other
            ones that are new each time, run as it did.
        sizes_of_all: Sizes and numbers of the last call if the program for all sizes
            has answered it, and none of their own is there or being compiled.
    """

    def __init__(
        self,
        module: fx.GraphModule,
        numbers: int,
        compile_graph: Compile | None,
        example: Example,
        compile_sizes: CompileSizes | None = None,
        varying: Sequence[int] | None = None,
        beside: Callable[[], Iterable[LiftedGraph]] = tuple,
    ) -> None:
        """Prepare a graph.

        Args:
            numbers: How many of its last inputs are numbers.
            compile_graph: Compiles a graph for example inputs; None leaves it to torch.
            example: Its inputs in the recorded run.
            compile_sizes: Compiles a graph once for all sizes; None if nothing does.
            varying: Which of the tensors may have other sizes in another call, by
                position; None if all may. Models have many that may not.
            beside: Returns the graphs of other records of the same callable, which may
                have a program for all sizes that is for this one as well.
        """
        self._varying = None if varying is None else tuple(varying)
        self._example = example
        self.module = module
        self._run = graph_runner(module)
        self._numbers = numbers
        self._compile = compile_graph
        self._lock = threading.Lock()
        self.forms = Forms(env.FORMS_BYTES.get())
        self.all_sizes: AllSizes | None = None
        if compile_sizes is not None and not has_loops(module):
            sharing = Sharing(self, beside, self._run)
            given = (compile_sizes, self._with_numbers, self._run)
            self.all_sizes = AllSizes(*given, sharing)
            if example.forms:
                shapes = tuple(tuple(shape) for shape, *_ in example.forms)
                self.all_sizes.note(shapes, example.numbers)
        self.seconds = 0.0
        self.through_torch = 0
        self.was_final = compile_graph is None
        self._last: Hashable | None = None
        self._known = KnownSizes()
        self.sizes_of_all: Hashable | None = None

    @property
    def compiled(self) -> int:
        """How many sets of values have a compiled form."""
        return len(self.forms)

    @property
    def is_for_torch(self) -> bool:
        """Whether torch runs all calls: nothing compiles the graph."""
        return self._compile is None

    @property
    def made(self) -> int:
        """How many programs were compiled: for a set of values, or for all sizes."""
        sizes = self.all_sizes
        return self.forms.made + (0 if sizes is None else sizes.made)

    @property
    def recorded(self) -> Recorded:
        """The graph as its record has it."""
        kinds = tuple((dtype, device) for *_, dtype, device in self._example.forms)
        return Recorded(self.module, self._numbers, kinds)

    @property
    def compile_seconds(self) -> float:
        """Time spent compiling, in calls and behind them."""
        sizes = self.all_sizes
        return self.seconds + (0.0 if sizes is None else sizes.compile_seconds)

    def mlir(self, stage: str) -> str:
        """Return the module for the values of the recorded run at a stage.

        Raises:
            ValueError: There is none: the graph runs through torch.
        """
        if self._compile is None:
            raise ValueError("the graph runs through torch, it has no MLIR stages")
        tensors = self._example.tensors()
        module = _with_numbers(self.module, self._example.numbers)
        try:
            if has_loops(module):
                module = with_counted_loops(module, tensors)
            compiled: Any = self._compile(without_numbers(module), tensors)
        except MagweldError as error:
            raise ValueError(str(error)) from error
        text: str = compiled.mlir(stage)
        return text

    def report(self) -> dict[str, Any]:
        """Return what was decided for the values that have a compiled form, joined.

        `lifted` tells that `mlir` is of other values than these.
        """
        sizes = self.all_sizes
        with self._lock:
            programs: list[Any] = self.forms.values()
            programs += [] if sizes is None else sizes.tiers
        report = {**joined_reports(programs), "lifted": True}
        if sizes is not None and (sizes.reason or sizes.tiers):
            report["all_sizes"] = sizes.reason or sizes.tiers[-1].describe()
            report["is_for_all_sizes"] = not sizes.reason
        return report

    def __call__(self, *inputs: Any) -> Any:
        """Run the graph."""
        if self._compile is None:
            self.through_torch += 1
            return self._run(*inputs)
        return self._specialised(self._compile, inputs)

    def _specialised(self, compile_graph: Compile, inputs: tuple[Any, ...]) -> Any:
        count = len(inputs) - self._numbers
        given, numbers = inputs[:count], inputs[count:]
        key = self._key(given, numbers)
        answer = self._known.take(key, given)
        if answer is not None:
            self._last = self.sizes_of_all = key
            self.was_final = True
            return answer([*inputs])
        tensors, wanted, stays = [*given], False, False
        with self._lock:
            unasked = self._known.drop(key)
            if unasked:
                self.forms.note_uses(key, unasked)
            program = self.forms.find(key)
            if program is None:
                sized, wanted = self._without_form(key, tensors, numbers)
                # Where hardly any call is like one before it, torch runs those to come.
                stays = not wanted and self.forms.are_new
        if program is not None:
            sized = self._beside(program, key, tensors, numbers)
        runs = program if sized is None else sized
        if not wanted and _runs_through_torch(runs):
            with self._lock:
                self.through_torch += 1
        has_own = wanted or program is not None
        self.sizes_of_all = None if sized is None or has_own else key
        # A program of its own takes the place of the one for all sizes.
        is_last = sized is None or not has_own
        self.was_final = is_last and (stays if runs is None else _is_final(runs))
        if wanted:
            program = self._make(compile_graph, key, tensors, numbers)
            if sized is None:
                return program(*tensors)
        if sized is not None:
            if is_last and sized.runs_compiled:
                self._know(key, sized, tensors)
            return sized(*inputs)
        return self._run(*inputs) if program is None else program(*tensors)

    def _know(
        self, key: Hashable, sized: TieredGraph, tensors: Sequence[torch.Tensor]
    ) -> None:
        """Have the next calls with some sizes answered by less.

        The guards of the record compare all of a tensor but what the key has of it, and
        its strides where that is something.
        """
        assert self.all_sizes is not None, "it has the program"
        runtime = self.all_sizes.runtime_tensors(key)
        if runtime is None:
            return
        varying = range(len(tensors)) if self._varying is None else self._varying
        dense = {*runtime, *varying}
        if all(tensors[number].is_contiguous() for number in dense):
            with self._lock:
                self._known.add(key, sized, tensors, sorted(dense))

    def _key(self, tensors: Sequence[torch.Tensor], numbers: Sequence[Any]) -> Hashable:
        """Return what tells calls apart: sizes and numbers that may be others."""
        varying = self._varying
        told = tensors if varying is None else [tensors[n] for n in varying]
        return key_of(told, numbers)

    def compare_tiers(self) -> None:
        """Have tiers compared anew whose times were those of a busy machine."""
        with self._lock:
            tiers = map(tier_of, self.forms.values())
        for tier in tiers:
            if tier is not None:
                tier.compare_again()

    def want_own(self, key: Hashable, seconds: tuple[float, float], calls: int) -> bool:
        """Have values compiled by themselves at the next call with them.

        Args:
            key: Sizes and numbers, as `key_of` gives them.
            seconds: Of a call that the program for all sizes answers, and of one that
                runs eagerly.
            calls: How many calls with such values there were.

        Returns:
            Whether that will be: they are not of many, or the first of these pay, and
            a program of their own may have saved by now what it takes to compile it.
        """
        sizes = self.all_sizes
        assert sizes is not None, "it has answered calls"
        with self._lock:
            are_many = self.forms.kinds > _FEW or sizes.grows
            will_be = calls >= uses_until_paid(sizes, *seconds)
            will_be &= not are_many or self._own_pay
            if will_be:
                self._known.drop(key)
                self.forms.want(key)
        return will_be

    def _without_form(
        self, key: Any, tensors: list[torch.Tensor], numbers: tuple[Any, ...]
    ) -> tuple[Any, bool]:
        """Return the program for all sizes, if any, and whether to make a form."""
        last, self._last = self._last, key
        sizes = self.all_sizes
        sized = None if sizes is None else sizes.find(key, tensors, numbers)
        if sizes is None or sized is None:
            awaits = sizes is not None and sizes.awaits
            uses = COMPILE_BESIDE if awaits else COMPILE_AFTER
            return None, self.forms.is_wanted(key, uses)
        # No program is made for each length of a cache that grows, unless that for all
        # sizes has turned out to be no faster than torch, and one for a length clearly
        # is: hardly any call has the length of the one before it.
        is_slow = sized.is_decided and not sized.is_clearly_compiled
        uses = uses_before_own(sized, sizes, shown=share_saved(self.forms.values()))
        is_one_of_many = self.forms.kinds > _FEW or (sizes.grows and key != last)
        if is_one_of_many and not (is_slow and self._own_pay):
            uses = max(COMPILE_BESIDE, uses)
            return sized, self.forms.is_wanted(key, uses, _FEW)
        return sized, self.forms.is_wanted(key, uses)

    def _beside(
        self,
        form: Callable[..., Any],
        key: Any,
        tensors: list[torch.Tensor],
        numbers: tuple[Any, ...],
    ) -> Any:
        """Return the program for all sizes where the code of a form is not there."""
        # Without the lock: what a form tells once it is there takes it.
        if self.all_sizes is None or _is_there(form):
            return None
        with self._lock:
            return self.all_sizes.find(key, tensors, numbers)

    def _with_numbers(self, numbers: Sequence[Any]) -> fx.GraphModule:
        return without_numbers(_with_numbers(self.module, numbers))

    def _make(
        self,
        compile_graph: Compile,
        key: Any,
        tensors: list[torch.Tensor],
        numbers: Sequence[Any],
    ) -> Callable[..., Any]:
        module = _with_numbers(self.module, numbers)
        start = time.perf_counter()
        verdict = self._verdict()
        try:
            if verdict is not None and verdict.is_for_torch:
                program = graph_runner(module)
            else:
                program = _compiled(compile_graph, module, tensors)
        except Exception as error:
            # A backend costs speed at most: these values stay with torch.
            _FALLBACKS.info("sizes or numbers stay with torch: %r", error)
            program = graph_runner(module)
        with self._lock:
            self.seconds += time.perf_counter() - start
            self.forms.add(key, program)
        tier = tier_of(program)
        if tier is not None and verdict is not None:
            tier.presume(verdict)
        if tier is not None and tier.is_pending:
            tier.on_ready = partial(self._ready, key, tier)
        return program

    def _verdict(self) -> Verdict | None:
        """Return what forms for other values have shown, if they agree clearly."""
        with self._lock:
            return common_verdict(self.forms.values())

    @property
    def _own_pay(self) -> bool:
        """Whether programs for sizes that come back may pay: the first of them do."""
        return share_saved(self.forms.values()) != 0

    def _ready(self, key: Any, tier: TieredGraph) -> None:
        """Take note of a form that was compiled behind the calls."""
        with self._lock:
            self.seconds += tier.seconds_behind
            self.forms.resize(key)


def _compiled(
    compile_graph: Compile, module: fx.GraphModule, tensors: list[torch.Tensor]
) -> Callable[..., Any]:
    if not has_loops(module):
        return compile_graph(without_numbers(module), tensors)
    count = iterations_in(module)
    if count is None or count > MAX_ITERATIONS:
        return graph_runner(module)
    flat = unroll(module)
    return flat.wrap(compile_graph(without_numbers(flat.module), tensors))


def _is_there(form: Callable[..., Any]) -> bool:
    """Whether a form awaits no compiled code; takes that of one that has come."""
    tier = tier_of(form)
    return tier is None or tier.advance()


def _runs_through_torch(form: Callable[..., Any] | None) -> bool:
    tier = tier_of(form)
    return form is None if tier is None else tier.compiled is None


def _is_final(form: Callable[..., Any]) -> bool:
    tier = tier_of(form)
    return tier is None or tier.is_decided


def _with_numbers(module: fx.GraphModule, numbers: Sequence[Any]) -> fx.GraphModule:
    """Return a graph whose last inputs are replaced by numbers."""
    inputs = sum(node.op == "placeholder" for node in module.graph.nodes)
    return with_inputs(module, dict(enumerate(numbers, inputs - len(numbers))))
