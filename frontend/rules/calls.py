"""Owns calls: functions, methods, classes, callable objects, native code."""

from __future__ import annotations

import functools
import types
from inspect import CO_GENERATOR
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    ForwardingRule,
    NativeCall,
    unbind,
)
from magweld.frontend.monitor.code_table import Row, spread_arguments
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.attributes import adopt_top, bear_top, see_through
from magweld.frontend.rules.functions import (
    is_of_library,
    is_python,
    register_function,
    special_method,
)
from magweld.frontend.rules.natives import (
    apply_entry,
    call_native,
    native_name,
    read_method,
    read_partial,
)
from magweld.frontend.rules.operators import is_plain
from magweld.frontend.rules.protocols import iterate, read_value
from magweld.frontend.state.attributes import note_class
from magweld.frontend.state.contents import DICT_VIEWS, builtin_base, read_all
from magweld.frontend.state.draws import CachedAnswer, entry_of
from magweld.frontend.state.ends import has_finalizer
from magweld.frontend.state.mro import ABSENT, find_in_mro, is_class, target_slot
from magweld.frontend.state.values import (
    is_equal_to_itself_alone,
    is_identity,
    is_scalar,
)

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]


def keyword_names(observer: Observer, row: Row, stack: list[Any]) -> None:
    """KW_NAMES."""
    observer.keyword_names = observer.code.co_consts[row.arg]


def precall(observer: Observer, row: Row, stack: list[Any]) -> None:
    """PRECALL of 3.11, which takes a bound method apart before CALL sees it."""
    method = stack[-row.arg - 1]
    if stack[-row.arg - 2] is observer.session.reader.null:
        if type(method) is types.MethodType:
            read_method(observer.session.graph, method)


class Called(NamedTuple):
    """What a call finds on the stack.

    Attributes:
        function: The callable.
        first: Position of the first argument; a receiver is one.
    """

    function: Any
    first: int


def called_at(base: int, stack: list[Any], null: Any) -> Called:
    """Return what is called, given the position of the first of its two slots.

    A method and its receiver lie in this order. Before or behind any other callable
    lies an empty slot, as the version of the interpreter will have it.
    """
    if stack[base] is null:
        return Called(stack[base + 1], base + 2)
    if stack[base + 1] is null:
        return Called(stack[base], base + 2)
    return Called(stack[base], base + 1)


def call(observer: Observer, row: Row, stack: list[Any]) -> None:
    """CALL: the callable and perhaps a receiver, the arguments."""
    names, observer.keyword_names = observer.keyword_names, ()
    _call(observer, row, stack, len(stack), names)


def call_kw(observer: Observer, row: Row, stack: list[Any]) -> None:
    """CALL_KW of 3.13: as CALL, on top the names of the last arguments."""
    _call(observer, row, stack, len(stack) - 1, stack[-1])


def _call(
    observer: Observer, row: Row, stack: list[Any], end: int, names: tuple[str, ...]
) -> None:
    observer.callee = None
    null = observer.session.reader.null
    function, first = called_at(end - row.arg - 2, stack, null)
    split = end - len(names)
    kwargs = dict(zip(names, stack[split:end], strict=True))
    call_object(observer, function, tuple(stack[first:split]), kwargs)


def call_function_ex(observer: Observer, row: Row, stack: list[Any]) -> None:
    """CALL_FUNCTION_EX: the callable, an iterable, optionally a mapping."""
    observer.callee = None
    null = observer.session.reader.null
    args, kwargs = spread_arguments(row.arg, stack, null)
    base = len(stack) - row.taken
    function = called_at(base, stack, null).function
    if type(kwargs) is not dict:
        raise StopRecordingError("native-call", "call with a mapping of arguments")
    graph = observer.session.graph
    graph.adopt(kwargs)
    read_all(graph, kwargs)
    call_object(observer, function, _spread(observer, function, args), kwargs)


def _spread(observer: Observer, function: Any, args: Any) -> Arguments:
    base = builtin_base(args)
    plain = base is not None and is_plain(find_in_mro(type(args), "__iter__"))
    if plain or type(args) in (range, *DICT_VIEWS):
        iterate(observer, args)
        # Taking built-in containers apart runs no code that sees what is returned.
        observer.calls_native = False
        return args if type(args) is tuple else tuple(args)
    # Only native code needs to know the arguments before the call; an operator is
    # recorded with those that arrive.
    inner = function.__func__ if type(function) is types.MethodType else function
    operator = observer.session.operators.is_operator(unbind(inner)[0])
    if not operator and not _runs_observed(observer, function):
        raise StopRecordingError("native-call", "call with an iterable of arguments")
    if observer.session.operators.is_tensor(type(args)):
        # Python code around operators, run by the call itself.
        for name in ("__len__", "__iter__"):
            method = note_class(observer.session.graph, type(args), name)
            register_function(observer.session, method)
    iterate(observer, args)
    return ()


def _runs_observed(observer: Observer, function: Any) -> bool:
    kind = type(function)
    if kind is types.MethodType:
        return _runs_observed(observer, function.__func__)
    if kind is types.FunctionType:
        return observer.session.annotations.is_observed(function)
    if kind in _BY_TYPE or is_class(function):
        return False
    if target_slot(kind) is not None:
        return False
    return type(find_in_mro(kind, "__call__")) is types.FunctionType


def call_object(
    observer: Observer, function: Any, args: Arguments, kwargs: Keywords
) -> None:
    """Record what a call reads, and prepare for the frames it will run."""
    kind = type(function)
    rule = _BY_TYPE.get(kind)
    if rule is not None:
        rule(observer, function, args, kwargs)
    elif is_class(function):
        call_class(observer, function, args, kwargs)
    else:
        _call_instance(observer, function, args, kwargs)


def _call_function(
    observer: Observer, function: Any, args: Arguments, kwargs: Keywords
) -> None:
    session = observer.session
    entry = session.annotations.find(function)
    if entry is not None:
        session.graph.identity(function)
        session.opaque_caller = observer
        call = NativeCall(native_name(function), args, kwargs, function)
        apply_entry(observer, entry, call)
        return
    register_function(session, function)
    observer.callee = function
    if function.__code__.co_flags & CO_GENERATOR:
        observer.after = bear_top


def _call_method(
    observer: Observer, method: Any, args: Arguments, kwargs: Keywords
) -> None:
    read_method(observer.session.graph, method)
    call_object(observer, method.__func__, (method.__self__, *args), kwargs)


def _call_partial(
    observer: Observer, partial: Any, args: Arguments, kwargs: Keywords
) -> None:
    read_partial(observer.session.graph, partial)
    merged = {**partial.keywords, **kwargs}
    call_object(observer, partial.func, (*partial.args, *args), merged)


def _call_cached(
    observer: Observer, function: Any, args: Arguments, kwargs: Keywords
) -> None:
    """Record the call of a function with a cache.

    A hit calls it again, as the program would, which keeps the order in which entries
    are dropped. One of the program has to find its answer there: what it would compute
    may raise, or have effects, and the program would compute it once more.
    """
    session, graph = observer.session, observer.session.graph
    if session.in_branch or session.operators.in_opaque:
        raise StopRecordingError("native-call", "cached function in a branch")
    is_own = _is_of_program(session, function)
    entry = entry_of(function, args, kwargs) if is_own else None
    if is_own and entry is None:
        raise StopRecordingError("native-call", "cached function without entries")
    if entry is not None and _is_behind_effects(session) and not entry.is_there():
        raise StopRecordingError("native-call", "cached function behind effects")
    graph.hold(function)
    for argument in (*args, *kwargs.values()):
        _read_cache_key(observer, argument)
    session.opaque_caller = observer
    where = graph.locate()
    observer.asks = "cached function"

    def note(observer: Observer, stack: list[Any]) -> None:
        observer.asks = ""
        result = stack[-1]
        if not is_scalar(result) and not is_identity(result):
            raise StopRecordingError("native-call", "cached function with objects")
        if entry is not None and not entry.is_there():
            raise StopRecordingError("native-call", "cached function without the entry")
        answer = CachedAnswer(function, args, dict(kwargs), result, where, entry)
        graph.draws.append(answer)

    observer.after = note


def _is_of_program(session: Session, function: Any) -> bool:
    inner = vars(function).get("__wrapped__")
    is_seen = type(inner) is types.FunctionType
    return not (is_seen and is_of_library(session, inner.__code__))


def _is_behind_effects(session: Session) -> bool:
    """Return whether functions of the program may follow from effects of the run.

    A hit calls them before it repeats these.
    """
    graph = session.graph
    return bool(graph.written() or session.effects or session.operators.has_effects)


def _read_cache_key(observer: Observer, argument: Any) -> None:
    if is_equal_to_itself_alone(argument) and not is_scalar(argument):
        observer.session.graph.hold(argument)
    else:
        read_value(observer, argument)


def call_class(
    observer: Observer, cls: type, args: Arguments, kwargs: Keywords
) -> None:
    """Record what making an instance reads."""
    if is_python(special_method(observer, cls, "__call__")):
        return
    if observer.session.annotations.find(cls) is not None:
        call_native(observer, cls, args, kwargs)
    else:
        construct(observer, cls, args, kwargs)


def construct(observer: Observer, cls: type, args: Arguments, kwargs: Keywords) -> None:
    """Record what `type.__call__` reads for a class with or without `__new__`."""
    session = observer.session
    graph = session.graph
    if session.in_branch and has_finalizer(cls):
        # On trial it would be made, refused, and come to its end.
        raise StopRecordingError("unknown-function", f"{cls.__qualname__}.__del__")
    maker = note_class(graph, cls, "__new__")
    if type(maker) is staticmethod:
        function = maker.__func__
        graph.constant(function)
        register_function(session, function)
    elif session.annotations.find(maker) is None:
        raise StopRecordingError("native-class", cls.__qualname__)
    starter = note_class(graph, cls, "__init__")
    if type(starter) is types.FunctionType:
        register_function(session, starter)
    elif type(maker) is not staticmethod or starter is not object.__init__:
        # That of `object` ignores what a function of Python makes the instance of.
        _initialise_native(observer, cls, starter, args, kwargs)
    observer.constructing = cls
    # A function of Python may return an instance that it has kept.
    observer.after = adopt_top if type(maker) is staticmethod else bear_top


def _initialise_native(
    observer: Observer, cls: type, starter: Any, args: Arguments, kwargs: Keywords
) -> None:
    entry = observer.session.annotations.find(starter)
    if entry is None:
        raise StopRecordingError("native-class", cls.__qualname__)
    apply_entry(observer, entry, NativeCall(cls.__qualname__, (None, *args), kwargs))


def _call_instance(
    observer: Observer, obj: Any, args: Arguments, kwargs: Keywords
) -> None:
    session = observer.session
    original = see_through(session.graph, obj)
    if original is not obj:
        call_object(observer, original, args, kwargs)
        return
    entry = session.annotations.find(obj)
    if entry is not None:
        session.graph.identity(obj)
        observer.calls_native = True
        apply_entry(observer, entry, NativeCall(native_name(obj), args, kwargs))
        return
    method = note_class(session.graph, type(obj), "__call__")
    if type(method) is types.FunctionType:
        session.graph.require(obj)
        entry = session.annotations.find(method)
        if isinstance(entry, ForwardingRule):
            entry(observer, NativeCall(native_name(method), (obj, *args), kwargs))
            return
        register_function(session, method)
        observer.callee = method
    elif method is not ABSENT:
        call = NativeCall(native_name(obj), (obj, *args), kwargs)
        entry = session.annotations.find(method)
        if entry is None:
            raise StopRecordingError("native-call", call.name)
        observer.calls_native = True
        apply_entry(observer, entry, call)


_BY_TYPE: Final = {
    types.FunctionType: _call_function,
    types.MethodType: _call_method,
    types.BuiltinFunctionType: call_native,
    types.MethodDescriptorType: call_native,
    types.WrapperDescriptorType: call_native,
    types.MethodWrapperType: call_native,
    types.ClassMethodDescriptorType: call_native,
    functools.partial: _call_partial,
    functools._lru_cache_wrapper: _call_cached,
}
