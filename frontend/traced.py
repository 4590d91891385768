"""Owns `trace`: a callable that answers calls from records, or runs and records."""

from __future__ import annotations

import functools
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import torch

from magweld import env
from magweld.frontend.annotations.scope import in_force
from magweld.frontend.annotations.user import UserAnnotation
from magweld.frontend.backends import (
    Backend,
    CompileGraph,
    LeftToTorchError,
    compile_captured,
    resolve_backend,
    run_eagerly,
)
from magweld.frontend.cache import RecordCache, signature_of
from magweld.frontend.capture import Capture, capture
from magweld.frontend.catalogue import CATALOGUE, Break
from magweld.frontend.explain import Miss, Recompile, explain
from magweld.frontend.guards.guard import Category
from magweld.frontend.lifting.policy import Dynamic, LiftingPolicy, lifting_policy
from magweld.frontend.lifting.programs import LiftedGraph, LiftedGraphError
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.record import GraphFailedError, Record

# Calls without a fitting record that `explain(recompiles=True)` remembers.
MAX_RECOMPILES = 32


def trace(
    target_callable: Callable[..., Any],
    backend: str | CompileGraph = "magweld",
    target: str = "cpu",
    dynamic: Dynamic = "auto",
    check: bool | None = None,
    annotations: Iterable[UserAnnotation] = (),
) -> Traced:
    """Wrap a callable or module: calls are captured once and then answered by graphs.

    Args:
        target_callable: Function, bound method, `nn.Module` or other callable object.
        backend: "magweld", "eager" (the captured graph run by torch), or a callable
            `(gm, example_inputs) -> callable(*tensors) -> tuple of tensors`.
        target: Device description for the "magweld" backend.
        dynamic: "auto" lifts numbers that keep changing out of the guards, False never
            does. A mapping lifts what it names from the first call on, e.g.
            `{"n": True, "self.step": True}`, and what keeps changing beside it.
        check: Whether each hit is compared with an eager run; None asks the
            environment variable `MAGWELD_CHECK`.
        annotations: What `annotate` has returned for callables that the front end
            cannot look into.

    Returns:
        A callable of the same signature.

    Raises:
        ValueError: Unknown backend or value of `dynamic`.
        TypeError: The target is not callable, or something is no annotation.
    """
    if not callable(target_callable):
        raise TypeError(f"expected a callable, got {type(target_callable).__name__}")
    lifting = lifting_policy(target_callable, dynamic)
    backend_used, items = resolve_backend(backend, target), in_force(annotations)
    if env.CHECK.get() if check is None else check:
        # Only this mode needs it, and it builds on this module.
        from magweld.frontend.differential.traced import CheckedTraced

        return CheckedTraced(target_callable, backend_used, lifting, items)
    return Traced(target_callable, backend_used, lifting, items)


class Traced:
    """A traced callable; attributes of the original are reached through it."""

    __slots__ = (
        "__weakref__",
        "_annotations",
        "_backend",
        "_bookkeeping",
        "_breaks",
        "_cache",
        "_counts",
        "_lock",
        "_magweld_target",
        "_recompiles",
        "_warned",
    )

    def __init__(
        self,
        target_callable: Callable[..., Any],
        backend: Backend,
        lifting: LiftingPolicy,
        annotations: tuple[UserAnnotation, ...] = (),
    ) -> None:
        self._magweld_target = target_callable
        self._annotations = annotations
        self._backend = backend
        self._cache = RecordCache(lifting)
        # One thread is monitored at a time; bookkeeping is never held for long.
        self._lock = threading.RLock()
        self._bookkeeping = threading.Lock()
        self._counts = {"calls": 0, "hits": 0, "misses": 0, "graphs": 0, "breaks": 0}
        self._breaks: list[Break] = []
        self._recompiles: deque[Recompile] = deque(maxlen=MAX_RECOMPILES)
        self._warned = False

    def __getattr__(self, name: str) -> Any:
        if name in Traced.__slots__:
            raise AttributeError(name)
        return getattr(self._magweld_target, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Answer from a record whose guards hold; otherwise run, observed."""
        if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
            return self._run_below_mode(args, kwargs)
        self._count("calls")
        failures = []
        for record in self._cache.records:
            verdict = record.program.check(args, kwargs)
            if type(verdict) is list:
                with self._bookkeeping:
                    self._counts["hits"] += 1
                    record.hits += 1
                    self._cache.promote(record)
                try:
                    return record.run(verdict)
                except LiftedGraphError:
                    reason = ""
                except GraphFailedError as error:
                    reason = str(error)
                return self._run_instead(args, kwargs, reason)
            failures.append((record, verdict))
        return self._miss(args, kwargs, failures)

    @property
    def records(self) -> list[Record]:
        """Records, the most recently used first."""
        return list(self._cache.records)

    @property
    def breaks(self) -> list[Break]:
        """Why calls were not captured, in order of appearance."""
        return list(self._breaks)

    def stats(self) -> dict[str, int]:
        """Return counts: calls, hits, misses, records, graphs, breaks."""
        return {**self._counts, "records": len(self._cache.records)}

    def explain(self, recompiles: bool = False) -> str:
        """Return what was captured, under which conditions, and what was refused.

        Args:
            recompiles: Also list the last calls that no record answered, with the guard
                of each record that failed: path, old and new value, file and line.
        """
        return explain(self._cache.records, self._breaks, self._recompiles, recompiles)

    def _run_below_mode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # Inside of a monitored run this call is a part of that run.
        depth = torch._C._len_torch_function_stack()
        mode = torch._C._get_function_stack_at(depth - 1) if depth else None
        if not isinstance(mode, OperatorRecorder):
            self._count("calls", "misses")
            self._note(Break(CATALOGUE["torch-mode"], "", ""))
        return self._magweld_target(*args, **kwargs)

    def _run_instead(self, args: Any, kwargs: Any, reason: str) -> Any:
        # An operator raises for the values of now: eager tells how, and when.
        result = self._magweld_target(*args, **kwargs)
        if reason:
            self._note(Break(CATALOGUE["backend-failed"], reason, ""))
        return result

    def _miss(self, args: Any, kwargs: Any, failures: list[Any]) -> Any:
        self._count("misses")
        if torch._C._are_functorch_transforms_active():
            # Its tensors have no memory; their class alone makes every record miss.
            self._note(Break(CATALOGUE["torch-mode"], "a transform of torch.func", ""))
            return self._magweld_target(*args, **kwargs)
        signature = signature_of(args, kwargs)
        path, unstable = "", False
        if failures:
            misses = tuple(Miss.of(*failure) for failure in failures)
            self._recompiles.append(Recompile(self._counts["calls"], misses))
            path = misses[0].path
            guards = [(record.guards[f.number], f) for record, f in failures]
            with self._bookkeeping:
                self._cache.lifting.note_miss(guards)
            unstable = self._cache.fail(signature, path)
        if unstable:
            self._note(Break(CATALOGUE["unstable-guard"], path, ""))
        if self._cache.has_given_up(signature):
            return self._magweld_target(*args, **kwargs)
        if not self._lock.acquire(blocking=False):
            self._note(Break(CATALOGUE["monitor-busy"], "", ""))
            return self._magweld_target(*args, **kwargs)
        try:
            # A value that differs from one recorded before is a branch, no condition.
            branched = any(
                record.guards[failure[0]].category is Category.PREDICATE
                for record, failure in failures
            )
            wanted = self._cache.lifting.wanted
            outcome = capture(
                self._magweld_target,
                args,
                kwargs,
                wanted,
                self._annotations,
                branched,
            )
            if outcome.capture is not None:
                record = self._compile(outcome.capture)
                with self._bookkeeping:
                    self._cache.add(record)
                    self._cache.lifting.note_pinned(outcome.capture.pinned)
                self._count("graphs")
            elif outcome.refusal is not None:
                self._note(outcome.refusal)
                if wanted:
                    # Without lifting, more programs can be captured.
                    self._cache.lifting.retreat(wanted)
                else:
                    self._cache.refuse(signature, outcome.refusal)
            return outcome.result
        finally:
            self._lock.release()

    def _count(self, *names: str) -> None:
        with self._bookkeeping:
            for name in names:
                self._counts[name] += 1

    def _note(self, refusal: Break) -> None:
        self._count("breaks")
        if refusal not in self._breaks:
            self._breaks.append(refusal)

    def _compile(self, captured: Capture) -> Record:
        module = captured.graph.module
        record = Record(
            graph=module,
            program=captured.program,
            mock=captured.mock,
            input_paths=captured.input_paths,
            compiled=run_eagerly(module, []),
            repeatable=captured.graph.repeatable,
            grad_enabled=captured.grad_enabled,
        )
        if captured.graph.is_empty:
            return record
        if captured.kept:
            record.breaks.append(Break(CATALOGUE["not-lifted"], captured.kept, ""))
        if captured.graph.scalars or captured.dynamic:
            record.compiled = self._lifted(captured)
            return record
        if captured.graph.open_shapes and self._backend.name != "eager":
            # A backend would bake in the shapes of the example.
            record.breaks.append(Break(CATALOGUE["dynamic-shape"], "", ""))
            return record
        failed = functools.partial(self._failed, record)
        try:
            record.compiled = compile_captured(captured.graph, self._backend, failed)
        except LeftToTorchError as left:
            record.breaks.append(Break(CATALOGUE[left.id], str(left), ""))
        except Exception as error:
            failed(error)
        return record

    def _failed(self, record: Record, error: Exception) -> None:
        # A backend costs speed at most: the graph itself is right.
        reason = f"{type(error).__name__}: {error}"
        record.breaks.append(Break(CATALOGUE["backend-failed"], reason, ""))
        self._warn(reason)

    def _lifted(self, captured: Capture) -> LiftedGraph:
        graph, backend = captured.graph, self._backend
        by_torch = backend.name == "eager" or (
            graph.trains and not backend.differentiates
        )
        return LiftedGraph(
            graph.module,
            len(graph.scalars),
            None if by_torch else backend.compile,
            repeatable=not graph.effects,
        )

    def _warn(self, reason: str) -> None:
        if not self._warned:
            self._warned = True
            name = self._backend.name
            warnings.warn(
                f"backend-failed: {name} raised {reason}; running the captured graph"
                " through torch",
                stacklevel=4,
            )
