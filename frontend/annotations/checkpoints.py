"""Annotation of `torch.utils.checkpoint.checkpoint`: the function that it runs counts.

Torch's own code around the function is left alone. Where a gradient may flow, what the
function computes is noted as a part of the graph that a hit checkpoints again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType, NoneType
from typing import Any, Final, NamedTuple

import torch
import torch.utils.checkpoint as module
from torch import fx
from torch.utils import _pytree as pytree

from magweld.frontend.annotations.effects import repeat_warning
from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import Annotation, Entries, NativeCall, Use
from magweld.frontend.monitor.code_table import SUSPENDABLE
from magweld.frontend.monitor.hooks import Shown
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.effects import has_effect
from magweld.frontend.operators.recording import Recording
from magweld.frontend.operators.torch_state import operator_state
from magweld.frontend.rules.natives import prepare_callback
from magweld.frontend.rules.protocols import read_value
from magweld.frontend.session.session import Session
from magweld.frontend.state.contents import read_item
from magweld.frontend.state.mro import find_in_mro
from magweld.frontend.state.nodes import Node
from magweld.frontend.state.steps import Call, Constant
from magweld.graphs.autocast import SWITCHES
from magweld.graphs.checkpoints import Part, note_part

_SIGNATURE: Final = inspect.signature(module.checkpoint)
# What these say beside their defaults is not followed.
_PLAIN: Final = ("context_fn", "determinism_check", "debug")
_DEBUG: Final = "_checkpoint_debug_enabled"
_PRESERVES: Final = "preserve_rng_state"
_SWITCHES: Final = frozenset({*SWITCHES, torch._C._set_grad_enabled})


def _refused(detail: str) -> StopRecordingError:
    return StopRecordingError("native-call", f"checkpoint {detail}")


class _Given(NamedTuple):
    """The arguments of a call.

    Attributes:
        function: What is checkpointed.
        args: What it takes.
        reentrant: Which of torch's two ways is taken; None if torch chooses, and warns.
        preserves: Whether it draws the same random numbers when it runs anew.
    """

    function: Any
    args: tuple[Any, ...]
    reentrant: bool | None
    preserves: bool


def _given(call: NativeCall) -> _Given:
    try:
        bound = _SIGNATURE.bind(*call.args, **call.kwargs)
    except TypeError as error:
        raise _refused(f"that raises: {error}") from error
    bound.apply_defaults()
    given: dict[str, Any] = bound.arguments
    for name in _PLAIN:
        if given[name] is not _SIGNATURE.parameters[name].default:
            raise _refused(f"with {name}")
    reentrant, keywords = given["use_reentrant"], dict(given["kwargs"])
    preserves = keywords.pop(_PRESERVES, True)
    if type(reentrant) not in (bool, NoneType) or type(preserves) is not bool:
        raise _refused("with an object for a flag")
    if keywords and reentrant is not False:
        raise _refused("that raises")
    args = (*given["args"], *keywords.values())
    return _Given(given["function"], args, reentrant, preserves)


def _checkpoint(observer: Observer, call: NativeCall) -> None:
    """`torch.utils.checkpoint.checkpoint`."""
    given, session = _given(call), observer.session
    _check(session, given)
    _note_warnings(observer, given)
    for name, value in call.kwargs.items():
        if name in _SIGNATURE.parameters or name == _PRESERVES:
            read_value(observer, value)
    graph = session.graph
    graph.constant(vars(module))
    read_item(graph, vars(module), _DEBUG)
    observer.calls_native = True
    if prepare_callback(observer, given.function):
        raise _refused("of native code")
    shown = Shown(observer, function_of(given.function))
    session.shown.append(shown)
    session.operators.follow(False)
    observer.awaits_operator = call.name
    close = _nothing
    if torch.is_grad_enabled():
        close = _Region(session, given).close

    def finish(observer: Observer, stack: list[Any]) -> None:
        observer.awaits_operator = ""
        session.shown.pop()
        session.operators.follow(True)
        close()
        graph.adopt(stack[-1])

    observer.after = finish


def _nothing() -> None:
    """Nothing is computed anew where no gradients are recorded."""


def _check(session: Session, given: _Given) -> None:
    """Refuse a call that does more than run its function.

    Raises:
        StopRecordingError: It does.
    """
    if session.in_branch or session.operators.in_opaque:
        raise _refused("in a branch")
    if vars(module)[_DEBUG] is not None:
        raise _refused("with debug")
    if torch.is_grad_enabled() and given.reentrant is not False:
        # Its function runs twice in different modes, which it may ask for.
        raise _refused("with use_reentrant=True and gradients")
    with torch._C.DisableTorchFunction():
        tensors = [x for x in pytree.tree_leaves(given.args) if torch.is_tensor(x)]
        kinds = {x.device.type for x in tensors} - {"cpu"}
    if len(kinds) > 1:
        raise _refused("on several devices, which warns")


def _note_warnings(observer: Observer, given: _Given) -> None:
    """Have a hit warn as torch does where no gradients are recorded."""
    if given.reentrant is False:
        return
    with torch._C.DisableTorchFunction():
        tensors = [x for x in given.args if torch.is_tensor(x)]
        needs = any(x.requires_grad for x in tensors)
    for tensor in tensors:
        # Whether it needs gradients is guarded also where nothing computes with it.
        observer.session.operators.read_form(tensor)
    if given.reentrant and needs:
        return
    parts = (Constant(needs),)
    step = Call(warn_of_checkpoint, Constant(given.reentrant), parts)
    repeat_warning(observer, step, UserWarning)


def warn_of_checkpoint(reentrant: bool | None, needs: bool) -> None:
    """Have torch warn as it does of a checkpoint, at the same lines of its own.

    Args:
        reentrant: What the program has passed as `use_reentrant`.
        needs: Whether an argument needs gradients.
    """
    with torch.no_grad():
        args = (torch.empty(0, requires_grad=True),) if needs else ()
        keywords: dict[str, Any] = {_PRESERVES: False}
        module.checkpoint(_compute_nothing, *args, use_reentrant=reentrant, **keywords)


def _compute_nothing(*args: torch.Tensor) -> None:
    """Stands for the function of a checkpoint."""


def function_of(function: Any) -> FunctionType:
    """Return the function of Python that runs when something is called."""
    kind = type(function)
    if kind in (MethodType, functools.partial):
        inner = function.__func__ if kind is MethodType else function.func
        return function_of(inner)
    found = function if kind is FunctionType else find_in_mro(kind, "__call__")
    if type(found) is not FunctionType or found.__code__.co_flags & SUSPENDABLE:
        raise StopRecordingError("native-call", f"object of {kind.__qualname__}")
    return found


class _Region:
    """What runs in a checkpoint: it must compute the same when it runs anew.

    Args:
        session: The run.
        given: The arguments of the checkpoint.
    """

    def __init__(self, session: Session, given: _Given) -> None:
        self._session = session
        self._given = given
        recorder = session.operators
        assert isinstance(recorder, Recording), "operators are recorded"
        self._recorder = recorder
        self._mark = self._recorder.mark()
        self._storages = self._recorder.tensors.known_storages()
        self._modes = operator_state()
        self._moment = session.graph.next_moment()
        self._effects = self._counts()
        choices = session.graph.choices
        self._before: Callable[[Node], None] | None = choices.check_part
        choices.check_part = self._check_write

    def _counts(self) -> tuple[int, ...]:
        graph = self._session.graph
        return len(graph.advances), len(graph.draws), len(self._session.effects)

    def _check_write(self, node: Node) -> None:
        """Refuse a write to what is older: it would happen a second time."""
        graph = self._session.graph
        if not graph.is_made_since(self._moment, id(node.obj)):
            raise _refused("of a function that writes state")

    def close(self) -> None:
        """Note what has run as a part of the graph.

        Raises:
            StopRecordingError: It has done more than to compute.
        """
        self._session.graph.choices.check_part = self._before
        if self._counts() != self._effects or operator_state() != self._modes:
            raise _refused("of a function with effects")
        nodes: list[fx.Node] = self._recorder.since(self._mark)
        for node in nodes:
            self._check_node(node)
        tensors = self._recorder.tensors
        found = map(tensors.find, pytree.tree_leaves(self._given.args))
        given = tuple(node for node in found if node is not None)
        note_part(nodes, Part(self._given.preserves, given))

    def _check_node(self, node: fx.Node) -> None:
        draws = node.meta.get("draws", False)
        if draws and not self._given.preserves:
            raise _refused("that draws other random numbers the second time")
        acts = has_effect(node) and not draws and node.target not in _SWITCHES
        if acts or node.meta.get("writes", frozenset()) & self._storages:
            raise _refused("of a function that writes tensors")


def _hooks() -> Iterator[CodeType]:
    """Yield the code that torch runs for each tensor that is kept for a gradient."""
    hook = getattr(module, "_checkpoint_hook", None)
    made = () if hook is None else hook.__init__.__code__.co_consts
    yield from (item for item in made if isinstance(item, CodeType))


CHECKPOINTS: Final[Entries] = (
    (module.checkpoint, _checkpoint),
    *((code, Annotation(rest=Use.KEEP)) for code in _hooks()),
)
