"""Owns the record: a graph with the conditions and effects of the run behind it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import fx

from magweld.diagnostics import ResultMismatchError
from magweld.frontend.catalogue import Break
from magweld.frontend.guards.guard import Guard, GuardProgram
from magweld.frontend.operators.edges import is_plain_leaf
from magweld.frontend.operators.put_back import UNKNOWN, Failing
from magweld.frontend.operators.torch_state import hooks_on_saved_tensors
from magweld.frontend.records.returned import Deciding, Inspectable, Repeating
from magweld.frontend.segments.shape import Form
from magweld.frontend.state.steps import Mock, Output
from magweld.graphs.gradients import has_inner_gradients, makes_gradients_of_inputs
from magweld.graphs.lifted_graph import LiftedGraph
from magweld.kept import KeptByRecords
from magweld.tiers import TieredGraph, tier_of

_PLAIN: Final = frozenset({torch.Tensor, torch.nn.Parameter})
# More hits than any record has.
NEVER: Final = sys.maxsize


class GraphFailedError(Exception):
    """A graph raised and its effects are undone; never leaves the front end.

    Attributes:
        refusal: Id of why the program runs eagerly instead.
    """

    def __init__(self, reason: str, refusal: str = "hit-raised") -> None:
        super().__init__(reason)
        self.refusal = refusal


@dataclass(repr=False)
class Record(KeptByRecords):
    """What one monitored run has left for later calls.

    Attributes:
        graph: Operator graph at the level of torch calls.
        program: Guards in executable form.
        mock: Effects and result after the graph.
        input_paths: How each graph input is reached, as expressions.
        compiled: What the backend returned.
        failing: What becomes of the graph when one of its operators raises.
        grad_enabled: Grad mode in which the record is valid.
        breaks: Why the backend was not used, if so.
        hits: Calls answered.
        number: Its place in the order in which records were made.
        is_compiled: Whether the backend has made something of the graph.
        seconds: Time that this took.
        ends: Form of the state in which it leaves the program, which its mock gives as
            the result; None when it leads to the end of the program.
        begins: File, line and function behind a break where it begins, "" for the call.
        tiered: The graph as torch and compiled code run it, None if it has one tier.
        is_timed: Whether the time of a call tells what the graph costs: not on a GPU.
        trains: Whether a gradient may flow through the graph.
        unfinished: Timed calls in a row whose gradients nobody has asked for yet.
        is_trained: Whether gradients of a timed call were ever asked for.
        failures: Hits whose graph has failed.
        assumes: Whether hits fail where truths of tensors are not those of the run.
        compared_from: Hits from which on they are compared with eager runs once more.
        guards_forms: Whether its guards test class, dtype, device, shape and strides of
            all inputs of the graph.
    """

    graph: fx.GraphModule
    program: GuardProgram
    mock: Mock
    input_paths: tuple[str, ...]
    compiled: Callable[..., Any]
    failing: Failing = UNKNOWN
    grad_enabled: bool = True
    breaks: list[Break] = field(default_factory=list)
    hits: int = 0
    number: int = 0
    is_compiled: bool = False
    seconds: float = 0.0
    ends: Form | None = None
    begins: str = ""
    tiered: TieredGraph | None = None
    is_timed: bool = False
    trains: bool = False
    unfinished: int = 0
    is_trained: bool = False
    failures: int = 0
    assumes: bool = False
    compared_from: int = NEVER
    guards_forms: bool = False

    def __repr__(self) -> str:
        counts = f"{self.operators} operators, {self._inputs} inputs, {self.hits} hits"
        return f"<record {self.number}: {counts}>"

    def __post_init__(self) -> None:
        self._inputs = len(self.input_paths)
        self._returned: Callable[..., Any] | None = None
        self._deciding: Deciding | None = None
        # What has run the graph, and what runs it on tensors of the same form.
        self._has_run: Callable[..., Any] | None = None
        self._run_alike: Callable[[list[Any]], Any] | None = None
        self._harmless = self.failing.harmless
        self._minds_history = makes_gradients_of_inputs(self.graph)
        # What a hit does beside its graph, and where hooks would be called inside.
        self._minds_hooks = bool(self.mock.steps) or has_inner_gradients(self.graph)
        self._plain = (
            self.mock.result.index
            if not self.mock.steps and isinstance(self.mock.result, Output)
            else None
        )

    def adopt(
        self,
        compiled: Callable[..., Any],
        failed: Callable[[Record, Exception], None],
    ) -> None:
        """Have the graph run by what a backend returned.

        Args:
            compiled: What the backend returned.
            failed: Gets this record and what the backend or its code raises later.
        """
        self.compiled = self._returned = compiled
        # Asked once: it is looked at in every timed call, and takes microseconds.
        returned: object = compiled
        self._deciding = returned if isinstance(returned, Deciding) else None
        self.tiered = tier_of(compiled)
        if self.tiered is None:
            return
        # It is told as long as it lives, and must not keep the record.
        here = weakref.ref(self)

        def tell(error: Exception) -> None:
            record = here()
            if record is not None:
                failed(record, error)

        def take(run: Callable[..., Any]) -> None:
            record = here()
            if record is not None:
                record.compiled = run

        self.tiered.on_failure = tell
        if self.tiered is compiled:
            # Hits then call the code without anything between.
            self.compiled = self.tiered.taken or compiled
            self.tiered.on_taken = take

    def give_up(self) -> bool:
        """Have no code made for the graph; return whether that was still to be made."""
        return self.tiered is not None and self.tiered.give_up()

    def compare_tiers(self) -> None:
        """Have tiers compared anew whose times were those of a busy machine."""
        if self.lifted is not None:
            self.lifted.compare_tiers()
        elif self.tiered is not None:
            self.tiered.compare_again()

    def mlir(self, stage: str) -> str:
        """Return the compiled module at a stage: "torch", "linalg", "tile-graph", ...

        Raises:
            ValueError: The graph runs through torch, or there is no such stage.
        """
        if self.lifted is not None:
            return self.lifted.mlir(stage)
        inspectable = self.inspectable
        if inspectable is None:
            raise ValueError("the graph runs through torch, it has no MLIR stages")
        return inspectable.mlir(stage)

    def source(self, name: str) -> str:
        """Return generated code of the record, with the user's lines as comments.

        Args:
            name: "guards", the function that tests them; "side_effects", what a hit
                makes and writes behind its graph; or "resume", how the program goes on
                where a break ends the record.

        Raises:
            ValueError: There is no code of this name.
        """
        # For readers only: no record needs it to run.
        from magweld.frontend.records import code_text

        texts = {
            "guards": code_text.guards_text,
            "side_effects": code_text.effects_text,
            "resume": code_text.resume_text,
        }
        if name not in texts:
            known = ", ".join(texts)
            raise ValueError(f"no source is called {name!r}; known: {known}")
        return texts[name](self)

    @property
    def may_train(self) -> bool:
        """Whether gradients may flow through what a call computes.

        What comes behind a break is not known.
        """
        return self.grad_enabled and (self.trains or self.ends is not None)

    @property
    def is_pending(self) -> bool:
        """Whether it is not known yet what will run the graph."""
        tiers = self.tiered if self._deciding is None else self._deciding
        return tiers is not None and not tiers.is_decided

    @property
    def lifted(self) -> LiftedGraph | None:
        """The graph where the record is for more than one set of sizes or numbers."""
        return self.compiled if isinstance(self.compiled, LiftedGraph) else None

    @property
    def is_for_torch(self) -> bool:
        """Whether torch runs the graph for good, for many sizes or numbers."""
        return self.lifted is not None and self.lifted.is_for_torch

    @property
    def was_final(self) -> bool:
        """Whether further hits with the sizes of the last one will run as it did."""
        return self.lifted is None or self.lifted.was_final

    @property
    def compilations(self) -> int:
        """How many forms of the graph were compiled."""
        if self.lifted is not None:
            return self.lifted.made
        return int(self.is_compiled) if self.tiered is None else self.tiered.made

    @property
    def compile_seconds(self) -> float:
        """Time spent compiling forms of the graph, in calls and behind them."""
        lifted = 0.0 if self.lifted is None else self.lifted.compile_seconds
        behind = 0.0 if self.tiered is None else self.tiered.seconds_behind
        return self.seconds + lifted + behind

    @property
    def evictions(self) -> int:
        """How many of these were dropped for want of memory."""
        return 0 if self.lifted is None else self.lifted.forms.dropped

    @property
    def torch_hits(self) -> int:
        """How many hits torch has answered."""
        if self.lifted is not None:
            return self.lifted.through_torch
        if self.tiered is not None:
            return self.tiered.torch_calls
        return 0 if self.is_compiled else self.hits

    @property
    def inspectable(self) -> Inspectable | None:
        """What the backend returned, if it tells about itself."""
        compiled: object = self._returned or self.compiled
        return compiled if isinstance(compiled, Inspectable) else None

    @property
    def operators(self) -> int:
        """Number of operators in the graph."""
        return sum(node.op.startswith("call") for node in self.graph.graph.nodes)

    @property
    def guards(self) -> tuple[Guard, ...]:
        """Conditions under which the record is valid."""
        return self.program.guards

    def note_backward(self) -> None:
        """Take note that gradients of a timed call were asked for."""
        self.unfinished = 0
        self.is_trained = True

    def run(self, fetched: list[Any]) -> Any:
        """Run the graph and repeat the effects.

        Args:
            fetched: What the guard program returned on success.

        Returns:
            What the program would return.

        Raises:
            GraphFailedError: An operator raised and what it and those before it did is
                undone; an ordinary run shows the exception, and the effects before it.
        """
        if self._minds_hooks and hooks_on_saved_tensors():
            self.program.undo()
            reason = "hooks on saved tensors see an ordinary run"
            raise GraphFailedError(reason, "saved-tensor-hooks")
        count = self._inputs
        if self._minds_history and not _are_plain_leaves(fetched[:count]):
            self.program.undo()
            reason = "an argument has a history or hooks"
            raise GraphFailedError(reason, "autograd-graph")
        put_back = None if self._harmless else self.failing.save(fetched)
        try:
            has_more = len(fetched) > count
            outputs = self._run_graph(fetched[:count] if has_more else fetched)
        except ResultMismatchError:
            self.program.undo()
            raise
        except Exception as error:
            torch._C._set_grad_enabled(self.grad_enabled)
            if not self.failing.repeats or hooks_on_saved_tensors():
                raise
            if put_back is not None:
                put_back()
            self.program.undo()
            self.failures += 1
            raise GraphFailedError(f"{type(error).__name__}: {error}") from None
        if self._plain is not None:
            return outputs[self._plain]
        return self.mock.replay(fetched[count:], outputs)

    def _run_graph(self, inputs: list[Any]) -> Any:
        compiled = self.compiled
        if compiled is not self._has_run:
            outputs = compiled(*inputs)
            self._run_alike = None
            self._has_run = compiled
            # Memory of other classes is asked for in ways of their own.
            plain = self.guards_forms and _PLAIN.issuperset(map(type, inputs))
            returned: object = compiled
            if plain and isinstance(returned, Repeating):
                self._run_alike = returned.call_alike
            return outputs
        if self._run_alike is None:
            return compiled(*inputs)
        return self._run_alike(inputs)


def _are_plain_leaves(inputs: list[Any]) -> bool:
    return all(not x.requires_grad or is_plain_leaf(x) for x in inputs)
