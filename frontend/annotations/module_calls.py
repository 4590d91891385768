"""Annotation of `torch.nn.Module.__call__`, which mostly only runs `forward`.

Without hooks two functions of torch hand the call on, the second one after ten tests.
What they read is recorded when the call begins, with the guards of an observed call,
and their frames are passed by: observed, each call takes 45 instructions more.
"""

from __future__ import annotations

import dis
import functools
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

import torch
from torch.nn.modules.module import (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
)

from magweld.frontend.monitor.annotation import Entries, ForwardingRule, NativeCall
from magweld.frontend.monitor.code_table import (
    JUMPS,
    SUSPENDABLE,
    VARIADIC,
    Flow,
    parts_of,
)
from magweld.frontend.monitor.observer import Observer, Passed
from magweld.frontend.rules.attributes import note_lookup, read_found
from magweld.frontend.rules.functions import register_function
from magweld.frontend.state.attributes import namespace_of
from magweld.frontend.state.contents import PLAIN_DICTS, read_item, read_truth
from magweld.frontend.state.lookup import Found, Lookup
from magweld.frontend.state.mro import class_dict

_CALL: Final[Any] = class_dict(torch.nn.Module)["__call__"]
_TRACING_STATE: Final = torch._C._get_tracing_state
# The functions of torch are known if they have the instructions of the functions below.
# What they read of a module: what the first one tests, which is None unless the module
# is compiled; the second function; `forward`; then the hooks that the second one tests.
# The hooks of all modules are global variables.
_NAMES: Final = (
    *("_compiled_call_impl", "_call_impl", "forward"),
    *("_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks"),
)
_SHARED: Final = (
    *("_global_backward_pre_hooks", "_global_backward_hooks"),
    *("_global_forward_hooks", "_global_forward_pre_hooks"),
)


def _as_first(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Do what the first function does."""
    if self._compiled_call_impl is not None:
        return self._compiled_call_impl(*args, **kwargs)
    return self._call_impl(*args, **kwargs)


def _as_second(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Do what the second function does up to its first return, behind all its tests."""
    forward_call = self._slow_forward if torch._C._get_tracing_state() else self.forward
    if not (
        self._backward_hooks
        or self._backward_pre_hooks
        or self._forward_hooks
        or self._forward_pre_hooks
        or _global_backward_pre_hooks
        or _global_backward_hooks
        or _global_forward_hooks
        or _global_forward_pre_hooks
    ):
        return forward_call(*args, **kwargs)
    raise NotImplementedError


# Instructions that only prepare a frame, or do nothing.
_PREPARING: Final = frozenset(
    {"CACHE", "COPY_FREE_VARS", "EXTENDED_ARG", "MAKE_CELL", "NOP"}
)
# Functions within a function make cells of its variables.
_SAME: Final = {
    "LOAD_DEREF": "LOAD_FAST",
    "LOAD_FAST_CHECK": "LOAD_FAST",
    "STORE_DEREF": "STORE_FAST",
}


class _Begin(NamedTuple):
    """What a function does up to one of its returns.

    Attributes:
        form: How many arguments it takes by name, and flags of its code.
        parts: Its instructions, with what each is about; of a jump the number of the
            one that it leads to, -1 for one behind.
        call: Offset of the last call with `*args` and `**kwargs`.
    """

    form: tuple[int, ...]
    parts: list[tuple[str, Any]]
    call: int


def _begin(function: Any, returns: int) -> _Begin | None:
    """Return what a function does up to a return; None if it handles exceptions."""
    if type(function) is not FunctionType:
        return None
    code = function.__code__
    flow, call = Flow(code), -1
    reads: list[dis.Instruction] = []
    numbers: dict[int, int] = {}
    for read in flow.instructions:
        if flow.covering(read.offset):
            return None
        numbers[read.offset] = len(reads)
        if read.opname == "CALL_FUNCTION_EX":
            call = read.offset
        reads += [one for one in parts_of(read) if one.opname not in _PREPARING]
        returns -= read.opname == "RETURN_VALUE"
        if not returns:
            break
    parts = [
        (
            _SAME.get(one.opname, one.opname),
            numbers.get(one.argval, -1) if one.opcode in JUMPS else one.argval,
        )
        for one in reads
    ]
    flags = code.co_flags & (VARIADIC | SUSPENDABLE)
    return _Begin((code.co_argcount, code.co_kwonlyargcount, flags), parts, call)


@dataclass(frozen=True)
class _Calls:
    """The two functions that hand on the call of a module without hooks.

    Attributes:
        second: The second function, an attribute of the module.
        codes: Code of both.
        offsets: Of the calls by which they hand on.
    """

    second: Any
    codes: tuple[CodeType, CodeType]
    offsets: tuple[int, int]


@functools.cache
def _known_calls() -> _Calls | None:
    """Return the functions of this torch; None if they do what is not known here."""
    second = class_dict(torch.nn.Module).get(_NAMES[1])
    offsets = []
    for function, known, returns in ((_CALL, _as_first, 2), (second, _as_second, 1)):
        found, wanted = _begin(function, returns), _begin(known, returns)
        if found is None or wanted is None or found[:2] != wanted[:2]:
            return None
        offsets.append(found.call)
    codes = (_CALL.__code__, second.__code__)
    return _Calls(second, codes, (offsets[0], offsets[1]))


class _Plain(NamedTuple):
    """The call of a module without hooks.

    Attributes:
        found: How the attributes of the module are found that the functions read.
        tables: The hooks of the module.
        shared: The hooks of all modules.
        forward: The function that runs in the end.
        tracer: The module that tells whether something traces.
    """

    found: list[Found]
    tables: list[Any]
    shared: list[Any]
    forward: Any
    tracer: Any


def _call(observer: Observer, call: NativeCall) -> None:
    """`Module.__call__`."""
    session = observer.session
    register_function(session, _CALL)
    session.opaque_caller = None
    observer.callee, observer.passed = _CALL, ()
    known = _known_calls()
    plain = None if known is None else _plain(observer, call, known)
    if known is None or plain is None:
        return
    _read(observer, call.args[0], known, plain)
    for value in (*call.args, *call.kwargs.values()):
        session.graph.adopt(value)
    first = Passed(_CALL, known.offsets[0], known.second)
    observer.passed = (first, Passed(known.second, known.offsets[1], plain.forward))
    step = None if observer.shadow is None else observer.shadow.step
    if step is not None and step.link is not None and step.link.callee == id(_CALL):
        step.link.callee = id(plain.forward)


def _plain(observer: Observer, call: NativeCall, known: _Calls) -> _Plain | None:
    """Return what a call finds; None if it is to be observed."""
    session, graph = observer.session, observer.session.graph
    if not session.only_guards_reads or observer.calls_native or not call.args:
        return None
    if (_CALL.__code__, known.second.__code__) != known.codes:
        return None
    found = [graph.plans.lookup(call.args[0], name) for name in _NAMES]
    forward = _forward(observer, known, *found[:3])
    tracer = _tracer(observer, known.second.__globals__)
    tables = found[3:]
    if forward is None or tracer is None:
        return None
    if any(table.how is not Lookup.INSTANCE for table in tables):
        return None
    values = [table.value for table in tables]
    shared = [known.second.__globals__.get(name) for name in _SHARED]
    if any(type(value) not in PLAIN_DICTS or value for value in (*values, *shared)):
        return None
    return _Plain(found, values, shared, forward, tracer)


def _forward(
    observer: Observer, known: _Calls, compiled: Found, second: Found, forward: Found
) -> FunctionType | None:
    """Return the function that a module runs; None if it is no plain method."""
    if compiled.how not in (Lookup.CLASS_VALUE, Lookup.INSTANCE):
        return None
    if compiled.value is not None or second.how is not Lookup.METHOD:
        return None
    if second.value is not known.second or forward.how is not Lookup.METHOD:
        return None
    function: FunctionType = forward.value
    if function.__code__.co_flags & SUSPENDABLE:
        return None
    entry = observer.session.annotations.find(function)
    return function if entry is None else None


def _tracer(observer: Observer, namespace: dict[str, Any]) -> Any:
    """Return the module that is asked whether something traces, None if it does."""
    lookup = observer.session.graph.plans.lookup
    if namespace.get("torch") is not torch:
        return None
    tracer = lookup(torch, "_C")
    if tracer.how is not Lookup.INSTANCE:
        return None
    asked = lookup(tracer.value, _TRACING_STATE.__name__)
    if asked.how is not Lookup.INSTANCE or asked.value is not _TRACING_STATE:
        return None
    return tracer.value if _TRACING_STATE() is None else None


def _read(observer: Observer, module: Any, known: _Calls, plain: _Plain) -> None:
    """Record what the functions read of a module, and of what all modules share."""
    session, graph = observer.session, observer.session.graph
    namespace = namespace_of(graph, module)
    assert namespace is not None, "a module has its hooks there"
    kind = type(module)
    if not graph.plans.is_noted(kind, _NAMES):
        for name, found in zip(_NAMES, plain.found, strict=True):
            note_lookup(graph, module, name, found)
        graph.plans.note(kind, _NAMES)
    for name in _NAMES:
        read_item(graph, namespace.obj, name)
    for function in (known.second, plain.forward):
        register_function(session, function)
    for table in plain.tables:
        read_truth(graph, table)
    # Once read they are guarded, and the run has left them as they are.
    shared = (plain.tracer, *plain.shared)
    if not graph.plans.has_read(_read_shared, shared):
        _read_shared(observer, known, plain)
        graph.plans.note_read(_read_shared, shared)


def _read_shared(observer: Observer, known: _Calls, plain: _Plain) -> None:
    """Record what the functions read that all modules share."""
    graph, namespace = observer.session.graph, known.second.__globals__
    graph.constant(namespace)
    for name in ("torch", *_SHARED):
        read_item(graph, namespace, name)
    for owner, name in ((torch, "_C"), (plain.tracer, _TRACING_STATE.__name__)):
        read_found(observer, owner, name, graph.plans.lookup(owner, name))
    for table in plain.shared:
        read_truth(graph, table)


MODULE_CALLS: Final[Entries] = ((_CALL, ForwardingRule(_call)),)
