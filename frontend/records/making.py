"""Owns making records: captured graphs handed to the backend."""

from __future__ import annotations

import contextlib
import functools
import time
import warnings
from collections.abc import Callable
from weakref import ref

from magweld.frontend.capture.build_record import Capture
from magweld.frontend.capture.operator_graph import OperatorGraph
from magweld.frontend.catalogue import CATALOGUE, Break
from magweld.frontend.records.backends import (
    Backend,
    LeftToTorchError,
    compile_captured,
    compile_values,
    run_eagerly,
)
from magweld.frontend.records.record import Record
from magweld.graphs.lifted_graph import Example, LiftedGraph
from magweld.graphs.shared_sizes import Recorded, may_be_alike


class RecordMaker:
    """Makes the records of one traced callable.

    Args:
        tell: Gets each reason why a record is not compiled, or not for all sizes.
        list_failure: Gets those that are faults of the backend.
    """

    def __init__(
        self,
        backend: Backend,
        tell: Callable[[Break], None],
        list_failure: Callable[[Break], None],
    ) -> None:
        self._backend = backend
        self._tell = tell
        self._list_failure = list_failure
        self._warned = False
        self._lifted_graphs: list[ref[LiftedGraph]] = []

    def make(self, captured: Capture) -> Record:
        """Return the record of a captured run."""
        # A first call may wait; the next may lead on behind a break, and should not.
        with contextlib.suppress(Exception):  # compiling raises it again, and is told
            self._backend.load()
        module = captured.graph.module
        record = Record(
            graph=module,
            program=captured.program,
            mock=captured.mock,
            input_paths=captured.input_paths,
            compiled=run_eagerly(module, []),
            failing=captured.graph.failing,
            grad_enabled=captured.grad_enabled,
            is_timed=all(tensor.is_cpu for tensor in captured.graph.examples),
            trains=captured.graph.trains,
            assumes=captured.assumes,
            guards_forms=not captured.dynamic,
        )
        self._note_reasons(record, captured)
        if captured.graph.is_empty:
            return record
        if captured.is_lifted or self._may_share(captured):
            record.compiled = self._lifted(captured)
            return record
        if self._backend.name != "eager" and not self._backend.may_have(captured.graph):
            return record
        failed = functools.partial(self._failed, record)
        start = time.perf_counter()
        try:
            compiled = compile_captured(captured.graph, self._backend, failed)
            record.adopt(compiled, self._failed)
            record.is_compiled = self._backend.name != "eager"
        except LeftToTorchError as left:
            self._note(record, left.id, str(left))
        except Exception as error:
            failed(error)
        record.seconds = time.perf_counter() - start
        return record

    def _note_reasons(self, record: Record, captured: Capture) -> None:
        """Note why a graph is less than one program, as far as that is known now."""
        for reason, where in captured.written_out:
            self._note(record, "loop-written-out", reason, where)
        if captured.graph.is_empty:
            return
        if captured.kept:
            self._note(record, "not-lifted", captured.kept)
        if self._backend.name == "eager":
            return
        if captured.graph.torch_only:
            self._note(record, captured.graph.torch_only)
        elif captured.is_lifted and not self._may_lift(captured.graph):
            self._note(record, "training-graph", "sizes or numbers that change")

    def _note(
        self, record: Record, id: str, detail: str = "", where: str = ""
    ) -> Break:
        refusal = Break(CATALOGUE[id], detail, where)
        record.breaks.append(refusal)
        self._tell(refusal)
        return refusal

    def _failed(self, record: Record, error: Exception) -> None:
        # A backend costs speed at most: the graph itself is right.
        reason = f"{type(error).__name__}: {error}"
        self._list_failure(self._note(record, "backend-failed", reason))
        if not self._warned:
            self._warned = True
            text = f"backend-failed: {self._backend.name} raised {reason}; running the"
            # Where warnings are errors, the result of the program must not be lost.
            with contextlib.suppress(UserWarning):
                warnings.warn(f"{text} captured graph through torch", stacklevel=3)

    def _may_share(self, captured: Capture) -> bool:
        """Whether a graph of sizes of one may have the program of another record.

        Sizes of one are never lifted, so nothing in it may be.
        """
        graph = captured.graph
        has_ones = any(1 in tensor.shape for tensor in graph.examples)
        if not has_ones or graph.torch_only or graph.trains or graph.makes_gradients:
            return False
        kinds = tuple((tensor.dtype, tensor.device) for tensor in graph.examples)
        own = Recorded(graph.module, 0, kinds)
        found = ((one.recorded, one.all_sizes) for one in self._graphs())
        others = (one for one, sizes in found if sizes and not sizes.reason)
        return any(may_be_alike(own, other) for other in others)

    def _lifted(self, captured: Capture) -> LiftedGraph:
        graph, backend = captured.graph, self._backend
        by_torch = (
            backend.name == "eager"
            or not backend.may_have(graph)
            or not self._may_lift(graph)
        )
        lifted = LiftedGraph(
            graph.module,
            len(graph.scalars),
            None if by_torch else compile_values(graph, backend),
            example=Example.of(graph.examples, [e.value for e in graph.scalars]),
            # Numbers of sizes are in the gradients of means.
            compile_sizes=(
                None if by_torch or graph.makes_gradients else backend.compile_sizes
            ),
            varying=captured.varying,
            beside=self._graphs,
        )
        self._lifted_graphs = [*map(ref, self._graphs()), ref(lifted)]
        return lifted

    def _may_lift(self, graph: OperatorGraph) -> bool:
        """Whether a graph with lifted values may be compiled for some of them.

        Halves are traced for the values of one run.
        """
        return not graph.trains or self._backend.differentiates

    def _graphs(self) -> list[LiftedGraph]:
        """Return the lifted graphs of the records that there are still."""
        found = (one() for one in list(self._lifted_graphs))
        return [graph for graph in found if graph is not None]
