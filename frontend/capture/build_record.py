"""Owns the end of a recording: what a record consists of."""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CellType
from typing import Any

import torch
from torch import fx
from torch.overrides import _pop_mode_temporarily
from torch.utils._python_dispatch import _disable_current_modes

from magweld.frontend.capture.operator_graph import OperatorGraph, build_graph
from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.control.rolling import roll_loops
from magweld.frontend.expressions.expressions import text_of
from magweld.frontend.guards.derive import Arguments, derive_guards
from magweld.frontend.guards.guard import GuardProgram
from magweld.frontend.lifting.ahead import KnownSizes
from magweld.frontend.lifting.settle import settle
from magweld.frontend.mock.plan import Planner
from magweld.frontend.mock.rebuild import Lifted
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.operators.torch_state import (
    autocast_of,
    program_hooks_on_saved_tensors,
    torch_state,
    without_autocast,
)
from magweld.frontend.session.session import Session
from magweld.frontend.state.natives import check_buffers
from magweld.frontend.state.steps import Call, Constant, Mock
from magweld.frontend.state.values import is_identity, is_scalar
from magweld.graphs.autocast import autocast_as


@dataclass(frozen=True)
class Capture:
    """A captured run.

    Attributes:
        graph: Its operators.
        program: Its guards; they fetch the graph inputs, then what the mock needs.
        mock: Its effects and result.
        input_paths: How the graph inputs are reached.
        pinned: Paths that were to be lifted, but whose value decided about the run.
        grad_enabled: Grad mode before the run.
        dynamic: Whether the graph takes tensors of several sizes.
        kept: Why numbers that keep changing were not lifted, "" if they were.
        written_out: Loops that are no operators: why, and the user's file:line.
        varying: Positions of the inputs of the graph some of whose sizes may be others
            in another call; guards fix those of the rest.
        assumes: Whether truths of tensors are taken for those of the run, and hits
            with others fail.
    """

    graph: OperatorGraph
    program: GuardProgram
    mock: Mock
    input_paths: tuple[str, ...]
    grad_enabled: bool
    pinned: tuple[str, ...] = ()
    dynamic: bool = False
    kept: str = ""
    written_out: tuple[tuple[str, str], ...] = ()
    varying: tuple[int, ...] = ()
    assumes: bool = False

    @property
    def is_lifted(self) -> bool:
        """Whether the graph is for more than one set of sizes or numbers."""
        return bool(self.graph.scalars) or self.dynamic

    def let_go(self) -> Callable[[], Capture]:
        """Return what gives the capture back; it keeps no tensors of the program.

        What has ended until then is replaced by zeros of the same form.
        """
        given = [_weakly(tensor) for tensor in self.graph.examples]
        graph = dataclasses.replace(self.graph, examples=())
        kept = dataclasses.replace(self, graph=graph)

        def restore() -> Capture:
            examples = tuple(give() for give in given)
            restored = dataclasses.replace(graph, examples=examples)
            return dataclasses.replace(kept, graph=restored)

        return restore


def _weakly(tensor: torch.Tensor) -> Callable[[], torch.Tensor]:
    if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided:
        return lambda: tensor
    reference, needs_gradient = weakref.ref(tensor), tensor.requires_grad
    shape, stride = tensor.shape, tensor.stride()
    dtype, device = tensor.dtype, tensor.device

    def give() -> torch.Tensor:
        found = reference()
        if found is None:
            found = torch.empty_strided(shape, stride, dtype=dtype, device=device)
            return found.zero_().requires_grad_(needs_gradient)
        return found

    return give


@dataclass(frozen=True)
class Run:
    """A recorded run, and what it began with.

    Attributes:
        session: The run.
        recorder: Its operators.
        arguments: What its guards begin with.
        state: Modes of torch before it.
        known: What there is of its sizes, if it lifts some.
    """

    session: Session
    recorder: OperatorRecorder
    arguments: Arguments
    state: tuple[Any, ...]
    known: KnownSizes

    def finish(self, result: Any, unfinished: bool = False) -> Capture:
        """Turn the recording into what a record consists of.

        Args:
            result: What the run gives.
            unfinished: Whether the program goes on.

        Raises:
            StopRecordingError: Something cannot be guarded or repeated.
            SizesAwaitedError: The sizes are to be worked out behind the calls; not if
                the program goes on, as what it goes on with is known now.
        """
        recorder, known, state = self.recorder, self.session.graph, self.state
        sizes = self.known
        if unfinished:
            sizes = dataclasses.replace(sizes, may_wait=False)
        lifting = known.lifting
        if lifting is not None and lifting.loops is not None:
            roll_loops(recorder, lifting, lifting.loops)
        recorder.tensors.replacements.check()
        check_buffers(known, bool(recorder.written))
        outputs: list[fx.Node] = []

        def output_of(obj: Any) -> int | None:
            node = recorder.output_node(obj)
            if node is None:
                return None
            if node not in outputs:
                outputs.append(node)
            return outputs.index(node)

        twin_of = recorder.tensors.arrays.twin
        planner = Planner(known, output_of, self.session.effects, twin_of)
        root = None if lifting is None else lifting.root.result
        mock = planner.plan(result, None if unfinished else root)
        if mock.steps and program_hooks_on_saved_tensors():
            # They may have written what the program has, within operators.
            raise StopRecordingError("saved-tensor-hooks", "a program with effects")
        left = [recorder.tensors.storage(node) for node in outputs]
        recorder.tensors.arrays.check(recorder.tensors.touched, left, planner.makes)
        now = torch_state()
        if (unfinished and now != state) or now[0] is not state[0]:
            mock = _switch_modes(mock, state, now)
        settled = settle(recorder, lifting, outputs, sizes)
        graph = build_graph(recorder, outputs, state[0], settled.scalars)
        fetched = [
            *(item.node for item in graph.inputs),
            *graph.scalars,
            *map(settled.final, planner.fetched),
        ]
        lifted = (settled.conditions, settled.dims, settled.scalars)
        # The steps of the graph switch autocast; the guards are for the entry.
        with autocast_as(autocast_of(state)):
            program = derive_guards(
                known, recorder, self.arguments, state, fetched, *lifted
            )
        if not known.is_written and not recorder.written and now == state:
            self._check_guards(program)
        paths = [known.paths.of(item.node) for item in graph.inputs]
        paths += map(text_of, graph.scalars)
        return Capture(
            graph,
            program,
            mock,
            tuple(paths),
            state[0],
            settled.pinned,
            bool(settled.dims),
            settled.kept,
            written_out=self._written_out(),
            varying=tuple(
                number
                for number, item in enumerate(graph.inputs)
                if settled.dims.get(item.node)
            ),
            assumes=recorder.assumes,
        )

    def _check_guards(self, program: GuardProgram) -> None:
        """Refuse a run that has written nothing, but whose guards do not hold now."""
        verdict = program.check_all(self.arguments.args, self.arguments.kwargs)
        if type(verdict) is not list:
            path = program.guards[verdict.number].path
            raise StopRecordingError("guard-failed", path)

    def _written_out(self) -> tuple[tuple[str, str], ...]:
        lifting = self.session.graph.lifting
        loops = None if lifting is None else lifting.loops
        known = [] if loops is None else loops.all
        failed = ((loop.failure, loop.where) for loop in known if loop.failure)
        return tuple(dict.fromkeys(failed))

    def finish_early(self, values: list[Any]) -> Capture:
        """Do the same within the run; what it gives is the state of the program.

        Raises:
            StopRecordingError: Something cannot be guarded or repeated.
        """
        with _outside_of_modes():
            for value in values:
                self._check_origin(value)
            return self.finish(values, unfinished=True)

    def _check_origin(self, value: Any) -> None:
        known = is_scalar(value) or is_identity(value)
        if known or type(value) in (CellType, Lifted):
            return
        made = self.recorder.output_node(value) is not None
        if not made and self.session.graph.find(value) is None:
            raise StopRecordingError("unknown-object", type(value).__qualname__)


def _switch_modes(mock: Mock, before: tuple[Any, ...], now: tuple[Any, ...]) -> Mock:
    """Return a mock that leaves the program in the modes of torch that it is in."""
    if without_autocast(before)[1:] != without_autocast(now)[1:]:
        raise StopRecordingError("result-object", "a mode of torch that is open")
    # A backend may have no use for the switches of the gradient mode in the graph.
    switch = Call(torch._C._set_grad_enabled, Constant(now[0]))
    return dataclasses.replace(mock, steps=(*mock.steps, switch))


@contextlib.contextmanager
def _outside_of_modes() -> Iterator[None]:
    """Take away the modes that watch the run, as they are in the way of guards."""
    with _pop_mode_temporarily(), _disable_current_modes():
        yield
