"""Owns `trace`: a callable that answers calls from records, or runs and records."""

from __future__ import annotations

import copy
import inspect
import threading
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import Any

import torch

from magweld import env
from magweld.compiler_options import parse_bytes
from magweld.frontend.annotations.scope import in_force
from magweld.frontend.annotations.user import UserAnnotation
from magweld.frontend.backends import (
    Backend,
    CompileGraph,
    resolve_backend,
)
from magweld.frontend.cache import RecordCache, Signature, signature_of
from magweld.frontend.capture import Outcome, capture
from magweld.frontend.catalogue import CATALOGUE, Break
from magweld.frontend.explain import Part, explain
from magweld.frontend.guards.guard import Category
from magweld.frontend.lifting.policy import Dynamic, LiftingPolicy, lifting_policy
from magweld.frontend.making import RecordMaker
from magweld.frontend.notes import Notes
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.record import GraphFailedError, Record
from magweld.frontend.segments.form import Suspended
from magweld.frontend.segments.program import Call, Program
from magweld.frontend.segments.store import Segments
from magweld.frontend.traced_module import traced_module


def trace(
    target_callable: Any,
    backend: str | CompileGraph = "magweld",
    target: str = "auto",
    dynamic: Dynamic = "auto",
    check: bool | None = None,
    annotations: Iterable[UserAnnotation] = (),
    tune: object = None,
    memory_budget: int | str | None = None,
) -> Any:
    """Wrap a callable or module: calls are captured once and then answered by graphs.

    Args:
        target_callable: Function, bound method, `nn.Module` or other callable object.
        backend: "magweld", "eager" (the captured graph run by torch), or a callable
            `(gm, example_inputs) -> callable(*tensors) -> tuple of tensors`.
        target: For the "magweld" backend: "auto" for the device of the tensors, "cpu",
            or a GPU such as "nvvm:sm_90a" that they are on.
        dynamic: "auto" lifts numbers that keep changing out of the guards, False never
            does. A mapping lifts what it names from the first call on, e.g.
            `{"n": True, "self.step": True}`, and what keeps changing beside it.
        check: Whether each hit is compared with an eager run; None asks the
            environment variable `MAGWELD_CHECK`.
        annotations: What `annotate` has returned for callables that the front end
            cannot look into.
        tune: Whether the "magweld" backend chooses plans by measuring: True, a number
            of seconds for each graph, or `magweld.TuneOptions`; None asks the
            environment variable `MAGWELD_TUNE`.
        memory_budget: Bytes, e.g. "2GiB", that a compiled call may take beside its
            arguments and results; what does not fit is made tile by tile. The call
            that is monitored is an ordinary run and takes what that takes.

    Returns:
        A callable of the same signature; for a module a module of the same class that
        shares all it holds with the original; for a class method or a static method
        one of these.

    Raises:
        ValueError: Unknown backend or value of `dynamic`, or no size.
        TypeError: The target is not callable, or something is no annotation.
    """
    options: dict[str, Any] = {
        "backend": backend,
        "target": target,
        "dynamic": dynamic,
        "check": check,
        "annotations": tuple(annotations),
        "tune": tune,
        "memory_budget": memory_budget,
    }
    for wrapper in (classmethod, staticmethod):
        if isinstance(target_callable, wrapper):
            return wrapper(trace_with(target_callable.__func__, options))
    if not callable(target_callable):
        raise TypeError(f"expected a callable, got {type(target_callable).__name__}")
    lifting = lifting_policy(target_callable, dynamic)
    budget = parse_bytes(memory_budget)
    backend_used = resolve_backend(backend, target, tune, budget)
    items = in_force(options["annotations"])
    kind: type[Traced] = Traced
    if env.CHECK.get() if check is None else check:
        # Only this mode needs it, and it builds on this module.
        from magweld.frontend.differential.traced import CheckedTraced

        kind = CheckedTraced
    made = kind(target_callable, backend_used, lifting, items)
    made.options = options
    if isinstance(target_callable, torch.nn.Module):
        return traced_module(target_callable, made)
    return made


def trace_with(target_callable: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Trace a callable with options that are given as a dict, as pickles do."""
    return trace(target_callable, **options)


def below_modes() -> bool:
    """Return whether a mode of torch would see the operators of a graph."""
    function_modes: int = torch._C._len_torch_function_stack()
    return function_modes > 0 or torch._C._len_torch_dispatch_stack() > 0


class Traced:
    """A traced callable; attributes of the original are reached through it."""

    __slots__ = (
        "__weakref__",
        "_annotations",
        "_backend",
        "_cache",
        "_lock",
        "_magweld_target",
        "_maker",
        "_notes",
        "_segments",
        "options",
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
        # One thread is monitored at a time.
        self._lock = threading.RLock()
        self._notes = Notes()
        self._maker = RecordMaker(backend)
        self._segments = Segments(lifting.fresh)
        self.options: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name in Traced.__slots__:
            raise AttributeError(name)
        return getattr(self._magweld_target, name)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind to an instance, as the function does that this stands for."""
        if instance is None or not isinstance(self._magweld_target, FunctionType):
            return self
        return MethodType(self, instance)

    def __repr__(self) -> str:
        target = self._magweld_target
        name = getattr(target, "__qualname__", type(target).__qualname__)
        return f"<traced {name}, {len(self.records)} records>"

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._magweld_target)

    def again(self, target_callable: Callable[..., Any]) -> Any:
        """Trace another callable with the same options."""
        return trace(target_callable, **self.options)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Records stay behind: guards hold objects of this process.
        return trace_with, (self._magweld_target, self.options)

    def __copy__(self) -> Any:
        return self.again(self._magweld_target)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.again(copy.deepcopy(self._magweld_target, memo))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Answer from a record whose guards hold; otherwise run, observed."""
        if below_modes():
            return self._run_below_mode(args, kwargs)
        failures = []
        for record in self._cache.records:
            verdict = record.program.check(args, kwargs)
            if type(verdict) is list:
                self._notes.hit(self._cache, record, calls=1)
                try:
                    result = record.run(verdict)
                    if record.ends is None:
                        return result
                    return self._go_on(Suspended(record.ends, result))
                except GraphFailedError as error:
                    reason = str(error)
                call = Call(self._magweld_target, args, kwargs)
                return self._run_instead(call, reason)
            failures.append((record, verdict))
        self._notes.count("calls")
        call = Call(self._magweld_target, args, kwargs)
        result = self._miss(self._cache, call, failures)
        return self._go_on(result) if type(result) is Suspended else result

    @property
    def records(self) -> list[Record]:
        """Records, the most recently used first; those behind breaks at the end."""
        result = list(self._cache.records)
        for segment in self._segments.all:
            result += segment.cache.records
        return result

    @property
    def breaks(self) -> list[Break]:
        """Why calls were not captured, in order of appearance."""
        return list(self._notes.breaks)

    def stats(self) -> dict[str, Any]:
        """Return counts: calls, hits, misses, records, graphs, breaks.

        Of the records that there are now: `compilations` and `compile_seconds`, forms
        that were dropped (`evictions`), and of the hits those that torch has answered
        (`torch_hits`).
        """
        records = self.records
        return {
            **self._notes.counts,
            "records": len(records),
            "compilations": sum(record.compilations for record in records),
            "compile_seconds": sum(record.compile_seconds for record in records),
            "evictions": sum(record.evictions for record in records),
            "torch_hits": sum(record.torch_hits for record in records),
        }

    def explain(self, recompiles: bool = False) -> str:
        """Return what was captured, under which conditions, and what was refused.

        Args:
            recompiles: Also list the last calls that no record answered, with the guard
                of each record that failed: path, old and new value, file and line.
        """
        parts = [Part("", self._cache.records)]
        for segment in self._segments.all:
            parts.append(Part(segment.form.where, segment.cache.records))
        return explain(parts, self._notes.breaks, self._notes.recompiles, recompiles)

    def _run_below_mode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # Inside of a monitored run this call is a part of that run.
        depth = torch._C._len_torch_function_stack()
        mode = torch._C._get_function_stack_at(depth - 1) if depth else None
        if not isinstance(mode, OperatorRecorder):
            self._notes.count("calls", "misses")
            self._notes.add(Break(CATALOGUE["torch-mode"], "", ""))
        return self._magweld_target(*args, **kwargs)

    def _run_instead(self, program: Program, reason: str) -> Any:
        # An operator raises for the values of now: eager tells how, and when.
        result = program.run()
        self._notes.add(Break(CATALOGUE["backend-failed"], reason, ""))
        return result

    def _go_on(self, program: Suspended) -> Any:
        """Run a program from where a recording ended; return its result."""
        while True:
            behind = self._segments.step(program)
            if type(behind) is not Suspended:
                return behind
            segment = self._segments.at(behind.form)
            rest = self._segments.rest(behind)
            if segment is None or below_modes():
                return rest.run()
            answer = self._answer(segment.cache, rest, behind.values, {})
            if type(answer) is not Suspended:
                return answer
            program = answer

    def _answer(
        self,
        cache: RecordCache,
        program: Program,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Suspended | Any:
        """Return where a program has got to, or its result when it has ended."""
        failures = []
        for record in cache.records:
            verdict = record.program.check(args, kwargs)
            if type(verdict) is not list:
                failures.append((record, verdict))
                continue
            self._notes.hit(cache, record)
            try:
                result = record.run(verdict)
            except GraphFailedError as error:
                return self._run_instead(program, str(error))
            return result if record.ends is None else Suspended(record.ends, result)
        return self._miss(cache, program, failures)

    def _miss(self, cache: RecordCache, program: Program, failures: list[Any]) -> Any:
        self._notes.count("misses")
        if torch._C._are_functorch_transforms_active():
            # Its tensors have no memory; their class alone makes every record miss.
            self._notes.add(
                Break(CATALOGUE["torch-mode"], "a transform of torch.func", "")
            )
            return program.run()
        signature = signature_of(program.arguments.args, program.arguments.kwargs)
        if failures:
            self._notes.failures(cache, signature, failures)
        if self._segments.worthless or cache.has_given_up(signature):
            return program.run()
        if not self._lock.acquire(blocking=False):
            self._notes.add(Break(CATALOGUE["monitor-busy"], "", ""))
            return program.run()
        try:
            known, wanted = self._segments, cache.lifting.wanted
            # A value that differs from one recorded before is a branch, no condition.
            branched = any(
                record.guards[failure.number].category is Category.PREDICATE
                for record, failure in failures
            )
            outcome = capture(
                program,
                known.sources,
                known.places,
                wanted,
                self._annotations,
                branched,
            )
            self._keep(cache, signature, outcome, wanted)
        finally:
            self._lock.release()
        if outcome.error is not None:
            raise outcome.error
        return outcome.result

    def _keep(
        self,
        cache: RecordCache,
        signature: Signature,
        found: Outcome,
        wanted: frozenset[str],
    ) -> None:
        """Keep what a run has given that was to lift some numbers."""
        if found.refusal is not None:
            self._notes.add(found.refusal)
        if found.capture is None:
            if found.refusal is not None and wanted:
                # Without lifting, more programs can be captured.
                cache.lifting.retreat(wanted)
            elif found.refusal is not None and not found.learned:
                cache.refuse(signature, found.refusal)
            return
        record = self._maker.make(found.capture)
        if found.ends is not None:
            record.ends = self._segments.intern(found.ends)
        if record.ends is not None and self._segments.tally(record.operators):
            self._notes.add(Break(CATALOGUE["many-breaks"], "", record.ends.where))
            with self._notes.lock:
                self._cache.drop()
            return
        with self._notes.lock:
            cache.add(record)
            cache.lifting.note_pinned(found.capture.pinned)
        self._notes.count("graphs")
