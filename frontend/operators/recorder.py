"""Owns the recording of torch calls as a torch-level operator graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import fx
from torch.overrides import TorchFunctionMode

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.operators.arguments import of_size
from magweld.frontend.operators.below import note_below
from magweld.frontend.operators.forms import given_size
from magweld.frontend.operators.kinds import (
    REFUSALS,
    CallKind,
    acts_through_operators,
    check_undoable,
    is_of_torch,
    kind_here,
    kind_of,
    name_of,
)
from magweld.frontend.operators.numbers_taken import write_numbers
from magweld.frontend.operators.opaque_operator import (
    adopt_deep,
    holds_tensor,
    run_opaque,
)
from magweld.frontend.operators.predicates import (
    Predicate,
    build_predicate,
    is_constant,
    is_value,
)
from magweld.frontend.operators.recording import Recording
from magweld.frontend.operators.targets import ArrayFunction, create_node
from magweld.frontend.operators.tensors import PLAIN_TENSORS
from magweld.frontend.operators.warned import WarningWatch
from magweld.frontend.operators.watch import OperatorWatch
from magweld.frontend.state.natives import is_array
from magweld.required_truth import REQUIRE_TRUTH
from magweld.storages import is_alias, storage_of

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session

# Calls that tell where in its storage a tensor begins, and those that count from the
# begin of the storage: at which argument they say where.
OFFSET_READERS: Final = frozenset({"storage_offset"})
_ADDRESSES: Final = ("data_ptr", "const_data_ptr")
_PLACING: Final = {
    "as_strided": 3,
    "as_strided_": 3,
    "as_strided_copy": 3,
    "as_strided_scatter": 4,
}
# Calls that a graph has no node for.
_NO_NODE: Final = frozenset({CallKind.CHECK, CallKind.METADATA})
_EFFECTS: Final = (CallKind.STATE, CallKind.FORM, CallKind.MEMORY)
Consider = Callable[[torch.Tensor | None, Any, Predicate | None], bool]


class OperatorRecorder(Recording, TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """Records every torch call of a run; the operator layer of its session.

    Attributes:
        serial: Number of calls seen.
        last: Name of the last one.
        consider: Asked whether the truth of a tensor becomes a branch of the graph;
            gets the tensor, its truth, and the predicate that would guard it.
        trial: Tells whether what runs now will be undone.
        assumes: Whether hits take truths of tensors for those of the run.
    """

    def __init__(self, watch: OperatorWatch, session: Session) -> None:
        TorchFunctionMode.__init__(self)
        Recording.__init__(self, watch, session)
        self.serial = 0
        self.last = ""
        self.consider: Consider | None = None
        self.trial: Callable[[], bool] = bool
        self.assumes = False
        self._tested: torch.Tensor | None = None
        self._opened: tuple[Any, Any, Any] = (None, (), {})
        self._passes = False
        self._hiding: Any = None
        self._warnings = WarningWatch()
        self.is_transforming = False
        self.in_opaque = False

    def is_tensor(self, kind: type) -> bool:
        return issubclass(kind, torch.Tensor)

    def is_operator(self, native: Any) -> bool:
        return acts_through_operators(native)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run one torch call and record it."""
        kwargs = kwargs or {}
        session = self._session
        if session.stopped is not None:
            return func(*args, **kwargs)
        if self._passes and not self.in_opaque:
            return func(*args, **kwargs)
        opaque_caller, session.opaque_caller = (
            session.opaque_caller,
            session.opaque_caller or session.current,
        )
        paused = session.pause_events()
        try:
            if not self.in_opaque and not self._takes(func, types, args):
                return func(*args, **kwargs)
            result = self._run(func, args, kwargs)
            if result is not NotImplemented and not self.in_opaque:
                self._note(func, args, kwargs, result)
            return result
        finally:
            session.opaque_caller = opaque_caller
            if paused:
                session.resume_events()

    def _takes(self, func: Any, types: Any, args: Any) -> bool:
        """Return whether a call can be an operator; the recording ends before others.

        Classes of the program see each call, and what they do then is not observed.
        """
        foreign = next((kind for kind in types if kind not in PLAIN_TENSORS), None)
        if foreign is None and is_of_torch(func, self.library):
            return True
        refusal, detail = "native-call", name_of(func)
        if foreign is not None:
            detail = foreign.__qualname__
            is_tensor = issubclass(foreign, torch.Tensor)
            refusal = "tensor-subclass" if is_tensor else "operator-argument"
        refusal = REFUSALS.get(kind_of(name_of(func), args), refusal)
        self._session.stop(StopRecordingError(refusal, detail))
        return False

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Make a torch call; the recording ends when it raises."""
        try:
            if self.in_opaque:
                return self._run_opaque(func, args, kwargs)
            self.watch.reset(name_of(func))
            self.tensors.replacements.note(func, args)
            if self.trial():
                check_undoable(func, args, kwargs)
            return self._warnings.call(self._frame(), func, args, kwargs)
        except StopRecordingError as stop:
            self._session.stop(stop)
            raise  # a branch on trial has ended instead
        except Exception:
            self._session.stop(StopRecordingError("operator-raised", name_of(func)))
            raise

    def _frame(self) -> FrameType | None:
        current = self._session.current
        return None if current is None else current.frame

    def _note(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Record a call that has happened; a fault must not reach the program."""
        try:
            self._record(func, args, kwargs, result)
        except StopRecordingError as stop:
            self._session.stop(stop)
        except Exception as error:
            self._session.stop(StopRecordingError("monitor-error", repr(error)))

    def open(self, func: Any, args: Any, kwargs: Any, *, watched: bool = False) -> None:
        if self.in_opaque:
            raise StopRecordingError("custom-function", "called by another one")
        if self.trial():
            # What such a call writes is not seen before it happens.
            raise StopRecordingError("tensor-value", "an annotated call in a branch")
        self.in_opaque = watched
        self._warnings.seen = False
        self._opened = (func, args, kwargs)
        self._passes = True
        self.watch.reset()

    def note_written(self, tensors: list[Any]) -> None:
        self.watch.written |= {storage_of(tensor) for tensor in tensors}

    def close(self, result: Any) -> None:
        opaque, self.in_opaque = self.in_opaque, False
        try:
            if opaque and (self.watch.reads or self.watch.dynamic):
                raise StopRecordingError("custom-function", "forward reads values")
            self._record(*self._opened, result)
        finally:
            self._passes = False

    def _run_opaque(self, func: Any, args: Any, kwargs: Any) -> Any:
        self.serial += 1
        self.last = name_of(func)
        call = functools.partial(func, *args, **kwargs)
        given = self.last, (args, kwargs)
        return run_opaque(self._session, self.tensors, call, *given, self.records_below)

    def hide_modes(self) -> None:
        if self._hiding is None:
            self._hiding = torch._C.DisableTorchFunction()
            self._hiding.__enter__()

    def show_modes(self) -> None:
        if self._hiding is not None:
            hiding, self._hiding = self._hiding, None
            hiding.__exit__(None, None, None)

    def read_form(self, tensor: Any) -> None:
        if self.in_opaque and not self._is_external(tensor):
            return  # no node of the graph: the outer call makes it
        opaque, self.in_opaque = self.in_opaque, False
        passes, self._passes = self._passes, True
        try:
            self.tensors.node(tensor)
        finally:
            self.in_opaque, self._passes = opaque, passes

    def follow(self, on: bool) -> None:
        if self.records_below:
            self.in_opaque = on
        else:
            self._passes = not on

    @property
    def records_below(self) -> bool:
        """Whether the operators are recorded that torch runs in the end."""
        return self.watch.below is not None

    def record_below(self, on: bool) -> None:
        """Record the operators that torch runs in the end, in place of those called."""
        self._passes, self.in_opaque = on, False
        self.serial += 1
        self.watch.reset()
        gradients = torch.is_grad_enabled()
        below = functools.partial(note_below, self, self._session, gradients)
        self.watch.below = below if on else None

    def _is_external(self, tensor: Any) -> bool:
        known = self._session.graph.find(tensor)
        return known is not None and known.external

    def release(self) -> None:
        self.show_modes()
        self.tensors.release()
        self._tested, self._opened = None, (None, (), {})

    def take_alias(self, tensor: Any, others: list[Any]) -> None:
        if self.in_opaque:
            self._session.graph.adopt(tensor)
            return
        self._passes = True
        try:
            if self.tensors.known_node(tensor) is not None:
                return
            shown = next((other for other in others if is_alias(tensor, other)), None)
            if shown is None:
                raise StopRecordingError("unknown-tensor", "made by native code")
            self.watch.reset()
            self._warnings.seen = False
            node = self._create(torch.Tensor.view_as, "view_as", (shown, shown), {})
            self._keep(node, CallKind.OPERATOR, "view_as", tensor)
        finally:
            self._passes = False

    def _record(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        self.serial += 1
        self.last = name = name_of(func)
        kind = self._kind(name, args, result)
        self._check_kind(kind, name)
        if kind is CallKind.CHECK and not self.watch.reads:
            return
        if kind is CallKind.METADATA:
            self._read_metadata(func, name, args, kwargs, result)
            return
        self.tensors.reads_offsets |= _counts_from_storage(name, args, kwargs)
        made = self.tensors.without_data(func, args, kwargs, result)
        if made is None:
            return
        node = self._create(made[0], name_of(made[0]), *made[1:])
        if name in _ADDRESSES and self.tensors.is_own(args[0]):
            # A hit would compute the tensor once more, somewhere else.
            raise StopRecordingError("tensor-value", name)
        if name == "one_hot" and given_size(node, name):
            self._check_classes(node, args[0], given_size(node, name))
        if self._lends(node, name, args, result):
            return
        if kind is CallKind.VALUE or (self.watch.reads and _is_value(result)):
            self._tested = args[0] if name == "__bool__" else None
            self._read_value(node, "tensor-value", result)
            return
        if self.watch.numbers and not self._may_become_control():
            write_numbers(self, self.memory(), made[0], node)
        self._keep(node, kind, name, result)

    def _check_kind(self, kind: CallKind, name: str) -> None:
        refusal = REFUSALS.get(kind)
        if refusal is not None:
            raise StopRecordingError(refusal, name)
        if kind in _NO_NODE and self._warnings.seen:
            raise StopRecordingError("tensor-attribute", f"{name}, which warns")

    def _lends(self, node: fx.Node, name: str, args: Any, result: Any) -> bool:
        """Return whether a call gives an array whose numbers the program alone decides.

        It is made by the run, then, and as good as any other of equal content as long
        as nothing writes to the memory that it shares.
        """
        if name != "numpy" or not is_array(result) or self._session.in_branch:
            return False
        if not is_constant(self.graph, node, self.memory()):
            return self._shows(node, args[0], result)
        self.graph.erase_node(node)
        self.tensors.arrays.lend(args[0], result)
        self._session.graph.adopt(result)
        return True

    def _shows(self, node: fx.Node, tensor: torch.Tensor, array: Any) -> bool:
        """Follow an array that shows a tensor; a number of no dimension is a value."""
        plain = type(tensor) in PLAIN_TENSORS and len(node.args) == 1
        if not plain or node.kwargs or not array.ndim or not tensor.is_cpu:
            return False
        self.graph.erase_node(node)
        self.tensors.arrays.follow(array, tensor)
        return True

    def twin(self, array: Any) -> torch.Tensor | None:
        within = self.in_opaque or self._session.in_branch
        return None if within else self.tensors.arrays.twin(array)

    def take_array(self, func: Any, args: Any, kwargs: Any, array: Any) -> None:
        twins = tuple(map(self.tensors.arrays.twin, args))
        pairs = zip(args, twins, strict=True)
        fixed = tuple(arg if twin is None else None for arg, twin in pairs)
        tensors = [twin for twin in twins if twin is not None]
        operator = ArrayFunction(func, fixed, kwargs)
        shown = is_array(array) and array.ndim and array.base is None
        if not shown or array.dtype.kind not in "bif":
            raise StopRecordingError("tensor-value", "numpy")
        self._passes = True
        try:
            twin = torch.from_numpy(array)
            self.watch.reset()
            self._warnings.seen = False
            self.serial += 1
            self.last = operator.__name__
            node = self._create(operator, operator.__name__, tuple(tensors), {})
            self._keep(node, CallKind.OPERATOR, operator.__name__, twin)
            node.meta["fallible"] = True
            self.tensors.arrays.follow(array, twin)
        finally:
            self._passes = False

    def _may_become_control(self) -> bool:
        """Return whether operators belong to what may be a branch or loop at the end.

        They must be alike then from iteration to iteration.
        """
        in_loop = self.operands is not None and self.operands.in_loop
        return self._session.in_branch or in_loop

    def _keep(self, node: fx.Node, kind: CallKind, name: str, result: Any) -> None:
        """Take note of effects and results of an operator of the graph."""
        if self.operands is not None and not self.watch.written:
            self.operands.note_operand_as_result(node, result)
        self.tensors.note_writes(node, self.watch.written, self.watch.random)
        # What reads a value decides by it, and may refuse it: an index of no dimension.
        node.meta["fallible"] = self.watch.fallible or self.watch.reads
        # What takes a number may refuse it: one of more than 64 bits.
        taken = node.all_input_nodes
        node.meta["numeric"] = any("number" in source.meta for source in taken)
        if kind in _EFFECTS or self._warnings.seen:
            node.meta["effect"] = True
        if self._warnings.seen:
            node.meta["warns"] = self._warnings.place or True
        if kind is CallKind.STATE:
            return
        if kind in (CallKind.FORM, CallKind.MEMORY):
            node.meta["changes"] = node.args[0]
            node.meta["internal"] = kind is CallKind.FORM
        if kind is CallKind.MEMORY:
            self.tensors.note_moved(self.tensors.replacements.close())
        if result is None and node.meta.get("effect"):
            return
        self.tensors.shapes.note(node, name, self.watch, result)
        if not self.tensors.register(node, result):
            raise StopRecordingError("tensor-value", name)

    def _kind(self, name: str, args: Any, result: Any) -> CallKind:
        kind = kind_of(name, args)
        if kind is CallKind.OPERATOR or not (
            args and isinstance(args[0], torch.Tensor)
        ):
            return kind
        new = self.tensors.is_new(args[0], name)
        if self._session.in_branch:
            # Its form would not be put back after a branch not taken.
            return kind_here(kind, name, args[0], result, False)
        here = kind_here(kind, name, args[0], result, new)
        return self.tensors.replacements.kind(here) if here is kind else here

    def _read_metadata(
        self, func: Any, name: str, args: Any, kwargs: Any, result: Any
    ) -> None:
        self.tensors.convert(args)
        self.tensors.reads_offsets |= name in OFFSET_READERS
        tensors = [
            self.tensors.node(arg) for arg in args if isinstance(arg, torch.Tensor)
        ]
        if self.tensors.shapes.decides(name, tensors):
            node = self._create(func, name, args, kwargs)
            self._tested = None
            self._read_value(node, "dynamic-shape", result)
        self._session.graph.adopt(result)
        if self.operands is not None:
            self.operands.note_answer(func, name, args, kwargs, result)

    def _create(self, func: Any, name: str, args: Any, kwargs: Any) -> fx.Node:
        self.tensors.taker = name
        fx_args, fx_kwargs = self._arguments(func, args, kwargs)
        made = of_size(func, args, fx_args)
        if made is not None:
            func, name, fx_args = made
        node = create_node(self.graph, func, name, fx_args, fx_kwargs)
        node.meta.update(self.place())
        return node

    def _arguments(
        self, func: Any, args: Any, kwargs: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a torch call as the graph holds them."""
        if self.operands is not None:
            return self.operands.arguments(func, args, kwargs)
        fx_kwargs = {key: self.tensors.convert(value) for key, value in kwargs.items()}
        return tuple(map(self.tensors.convert, args)), fx_kwargs

    def _check_classes(self, node: fx.Node, classes: torch.Tensor, count: int) -> None:
        """Have hits run eagerly for classes that do not exist: compiled code takes all.

        Where that cannot be, the operator runs through torch.
        """
        behind = self.tensors.written and torch.is_grad_enabled()
        if not classes.is_cpu or behind:
            node.meta["checks"] = True
            return
        place = self.place()
        call, given = self.graph.call_method, node.args[0]
        limits = call("ge", (given, 0)), call("lt", (given, count))
        within = call("all", (call("logical_and", limits),))
        check = self.graph.call_function(REQUIRE_TRUTH, (within, True))
        for one in (*limits, *within.all_input_nodes, within, check):
            one.meta.update(place, fallible=one is check)

    def require(self, tensor: torch.Tensor, truth: bool) -> bool:
        """Have hits for which a tensor has another truth fail, and run eagerly.

        A guard would compute the tensor before the graph does so once more, and none
        can compute what is drawn.

        Returns:
            Whether that is done: not on GPUs, where a check that fails leaves nothing
            that runs, nor behind a write that autograd has seen, nor of numbers.
        """
        add = self.requires(tensor, truth)
        if add is not None:
            add()
        return add is not None

    def requires(self, tensor: torch.Tensor, truth: bool) -> Callable[[], None] | None:
        """Return what does so later, as if it were done now; None if it cannot be."""
        behind = self.tensors.written and torch.is_grad_enabled()
        if not tensor.is_cpu or tensor.dtype is not torch.bool or behind:
            return None
        operands = (self.tensors.node(tensor), truth)
        mark, place = self.mark(), self.place()

        def add() -> None:
            with self.graph.inserting_before(mark.next):
                node = self.graph.call_function(REQUIRE_TRUTH, operands)
            node.meta.update(place, fallible=True)

        return add

    def _read_value(self, node: fx.Node, refusal: str, result: Any) -> None:
        session, predicate = self._session, None
        if is_value(result):
            predicate = build_predicate(self.graph, node, result, self.memory())
        self.graph.erase_node(node)
        considered = (self._tested, result, predicate)
        if self.consider and session.call_observed(self.consider, *considered):
            return
        if predicate is None:
            raise StopRecordingError(refusal, self.last)
        self.rely_on(predicate)
        adopt_deep(session, result)


def _counts_from_storage(name: str, args: Any, kwargs: Any) -> bool:
    place = _PLACING.get(name)
    if place is None:
        return False
    offset = args[place] if len(args) > place else kwargs.get("storage_offset")
    return offset is not None


def _is_value(result: Any) -> bool:
    # An assignment may read an index; it results in nothing.
    return result is not None and not holds_tensor(result)
