"""Annotation of `torch.nn.Module.__call__`, which mostly only runs `forward`.

Without hooks two functions of torch hand the call on, the second one after ten tests.
What they read is recorded when the call begins, with the guards of an observed call,
and their frames are passed by: observed, each call takes 45 instructions more.
"""

from __future__ import annotations

import dis
import functools
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

import torch

from magweld.frontend.monitor.annotation import Entries, ForwardingRule, NativeCall
from magweld.frontend.monitor.code_table import Flow, parts_of, spread_count
from magweld.frontend.monitor.observer import Observer, Passed
from magweld.frontend.rules.attributes import note_lookup, read_found
from magweld.frontend.rules.functions import register_function
from magweld.frontend.state.contents import read_item, read_truth
from magweld.frontend.state.lookup import Found, Lookup
from magweld.frontend.state.mro import class_dict
from magweld.frontend.state.namespaces import namespace_of

_CALL: Final[Any] = class_dict(torch.nn.Module)["__call__"]
_TRACING_STATE: Final = torch._C._get_tracing_state
# Whose truth is the number of their elements.
_PLAIN: Final = (dict, OrderedDict)
# Flags of code that takes `*args` and `**kwargs`, and of what does not run at once.
_VARIADIC: Final = 0x04 | 0x08
_SUSPENDABLE: Final = 0x20 | 0x80 | 0x100 | 0x200


class _Part(NamedTuple):
    """What an instruction does on a way through a function.

    Attributes:
        kind: What it does.
        about: A name, or a number of values.
    """

    kind: str
    about: Any = None


class _Way(NamedTuple):
    """The way through a function on which all that it tests is false or None.

    Attributes:
        parts: What its instructions do, up to the first that returns.
        call: Offset of the last call with `*args` and `**kwargs`.
    """

    parts: list[_Part]
    call: int


# What instructions of CPython 3.11 to 3.14 do, "" for nothing that matters here.
_KINDS: Final = {
    name: kind
    for kind, names in {
        "": (
            "CACHE COPY_FREE_VARS EXTENDED_ARG JUMP_FORWARD MAKE_CELL NOP PRECALL"
            " PUSH_NULL RESUME TO_BOOL"
        ),
        "attribute": "LOAD_ATTR LOAD_METHOD",
        "call": "CALL",
        "global": "LOAD_GLOBAL",
        "is none": "POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE"
        " POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE",
        "is true": "POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_TRUE"
        " POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE",
        "load": "LOAD_DEREF LOAD_FAST LOAD_FAST_CHECK",
        "map": "BUILD_MAP",
        "merge": "DICT_MERGE",
        "return": "RETURN_VALUE",
        "spread": "CALL_FUNCTION_EX",
        "store": "STORE_DEREF STORE_FAST",
    }.items()
    for name in names.split()
}
_JUMPS_HERE: Final = ("_IF_FALSE", "_IF_NONE", "JUMP_FORWARD")
_NAMING: Final = ("attribute", "global", "load", "store")
_COUNTING: Final = ("call", "map", "merge")
# What is called, a place beside it, positional and keyword arguments.
_SPREAD: Final = 4


def _way(function: Any) -> _Way | None:
    """Return the way through a function of the form `f(self, *args, **kwargs)`.

    None if it is no such function, handles exceptions, or does what is not known here.
    """
    if type(function) is not FunctionType:
        return None
    code = function.__code__
    count = code.co_argcount, code.co_kwonlyargcount
    if count != (1, 0) or code.co_flags & (_VARIADIC | _SUSPENDABLE) != _VARIADIC:
        return None
    flow = Flow(code)
    parts: list[_Part] = []
    offset, call = 0, -1
    while not parts or parts[-1].kind != "return":
        read = flow.index[offset]
        known = [_part(one) for one in parts_of(read)]
        if None in known or flow.covering(offset):
            return None
        parts += [part for part in known if part is not None and part.kind]
        if read.opname == "CALL_FUNCTION_EX":
            call = offset
        jumps = read.opname.endswith(_JUMPS_HERE)
        offset = read.argval if jumps else flow.following.get(offset, -1)
    return _Way(parts, call)


def _part(read: dis.Instruction) -> _Part | None:
    kind = _KINDS.get(read.opname)
    if kind is None:
        return None
    if kind in _NAMING:
        return _Part(kind, read.argval)
    if kind == "spread":
        return _Part(kind, spread_count(read.arg or 0))
    return _Part(kind, read.arg if kind in _COUNTING else None)


@dataclass(frozen=True)
class _Calls:
    """The two functions that hand on the call of a module without hooks.

    Attributes:
        second: The second function, an attribute of the module.
        codes: Code of both.
        offsets: Of the calls by which they hand on.
        names: The attributes of the module that they read: what the first one tests,
            which is None unless the module is compiled; the second function; `forward`;
            then the hooks that the second one tests.
        shared: Global variables that it tests: the hooks of all modules.
    """

    second: Any
    codes: tuple[CodeType, CodeType]
    offsets: tuple[int, int]
    names: tuple[str, ...]
    shared: tuple[str, ...]


_FORWARD: Final = "forward"


@functools.cache
def _known_calls() -> _Calls | None:
    """Return the functions of this torch; None if they do what is not known here."""
    first = _way(_CALL)
    read = [] if first is None else _named(first.parts, "attribute")
    if first is None or len(read) != 2:
        return None
    compiled, name = read
    this = _Part("load", _CALL.__code__.co_varnames[0])
    begin = [this, _Part("attribute", compiled), _Part("is none")]
    begin += [this, _Part("attribute", name)]
    second = class_dict(torch.nn.Module).get(name)
    way = _way(second)
    if way is None or first.parts != begin + _handing_on(_CALL.__code__):
        return None
    tests = _tests(second.__code__, way.parts)
    if tests is None:
        return None
    codes, offsets = (_CALL.__code__, second.__code__), (first.call, way.call)
    hooks, shared = tests
    names = (compiled, name, _FORWARD, *hooks)
    return _Calls(second, codes, offsets, names, shared)


def _named(parts: Sequence[_Part], kind: str) -> list[Any]:
    return [part.about for part in parts if part.kind == kind]


def _handing_on(code: CodeType) -> list[_Part]:
    """Return the end of a way: a call with the further arguments of the function."""
    _, args, kwargs = code.co_varnames[:3]
    given = [_Part("load", args), _Part("map", 0), _Part("load", kwargs)]
    return [*given, _Part("merge", 1), _Part("spread", _SPREAD), _Part("return")]


def _tests(
    code: CodeType, parts: list[_Part]
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return what the second function tests before it runs `forward`.

    Returns:
        Attributes of the module, then global variables; None if it does anything else.
    """
    this = _Part("load", code.co_varnames[0])
    taken = code.co_varnames[:3]
    stored = [name for name in _named(parts, "store") if name not in taken]
    begin = [_Part("global", "torch"), _Part("attribute", "_C")]
    begin += [_Part("attribute", _TRACING_STATE.__name__), _Part("call", 0)]
    begin += [_Part("is true"), this, _Part("attribute", _FORWARD)]
    begin += [_Part("store", name) for name in stored]
    end = [*(_Part("load", name) for name in stored), *_handing_on(code)]
    first, last = len(begin), len(parts) - len(end)
    if len(stored) != 1 or parts[:first] != begin or parts[last:] != end:
        return None
    hooks: list[str] = []
    shared: list[str] = []
    while first < last:
        own = parts[first] == this
        tested, test = parts[first + own : first + own + 2]
        kinds = (tested.kind, test.kind)
        if kinds != ("attribute" if own else "global", "is true"):
            return None
        (hooks if own else shared).append(tested.about)
        first += own + 2
    return (tuple(hooks), tuple(shared)) if first == last else None


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
    followed = graph.lifting is not None and graph.lifting.in_loop
    choices = graph.choices.merged or graph.choices.sealed
    if followed or choices or session.in_branch or observer.calls_native:
        return None
    if not call.args:
        return None
    if (_CALL.__code__, known.second.__code__) != known.codes:
        return None
    found = [graph.plans.lookup(call.args[0], name) for name in known.names]
    forward = _forward(observer, known, *found[:3])
    tracer = _tracer(observer, known.second.__globals__)
    tables = found[3:]
    if forward is None or tracer is None:
        return None
    if any(table.how is not Lookup.INSTANCE for table in tables):
        return None
    values = [table.value for table in tables]
    shared = [known.second.__globals__.get(name) for name in known.shared]
    if any(type(value) not in _PLAIN or value for value in (*values, *shared)):
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
    if function.__code__.co_flags & _SUSPENDABLE:
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
    if not graph.plans.is_noted(kind, known.names):
        for name, found in zip(known.names, plain.found, strict=True):
            note_lookup(graph, module, name, found)
        graph.plans.note(kind, known.names)
    for name in known.names:
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
    for name in ("torch", *known.shared):
        read_item(graph, namespace, name)
    for owner, name in ((torch, "_C"), (plain.tracer, _TRACING_STATE.__name__)):
        read_found(observer, owner, name, graph.plans.lookup(owner, name))
    for table in plain.shared:
        read_truth(graph, table)


MODULE_CALLS: Final[Entries] = ((_CALL, ForwardingRule(_call)),)
