"""Owns instance and subclass checks, those of abstract base classes among them."""

from __future__ import annotations

import abc
import collections.abc
import contextlib
import os
import typing
import weakref
from types import FunctionType
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import NativeCall
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.attributes import see_through
from magweld.frontend.rules.functions import register_function
from magweld.frontend.rules.natives import apply_entry
from magweld.frontend.state.attributes import note_class
from magweld.frontend.state.contents import read_all
from magweld.frontend.state.mro import find_in_mro, is_class, is_immutable, mro
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_scalar


def is_instance(observer: Observer, call: NativeCall) -> None:
    """`isinstance`."""
    obj, target = call.args
    if not _check_class(observer, obj, target, "__instancecheck__"):
        # Classes such as FloatTensor ask for more than the type.
        if observer.session.operators.is_tensor(type(obj)):
            observer.session.operators.read_form(obj)
    if not is_scalar(obj):
        graph = observer.session.graph
        graph.require(obj)
        original = see_through(graph, obj)
        if original is not obj:
            # It is an instance of its own class and of that of the original.
            _read_order(graph, type(obj))
            obj = original
        if note_class(graph, type(obj), "__class__") is not _CLASS_GETTER:
            raise StopRecordingError("native-attribute", "__class__")
        _read_order(graph, type(obj))


_CLASS_GETTER: Final = object.__dict__["__class__"]


def is_subclass(observer: Observer, call: NativeCall) -> None:
    """`issubclass`."""
    subclass, target = call.args
    _check_class(observer, subclass, target, "__subclasscheck__")
    if isinstance(subclass, type):
        _read_order(observer.session.graph, subclass)


def _read_order(graph: RefGraph, cls: type) -> None:
    """Record the bases of a class, which `__bases__` can be given others for."""
    if not is_immutable(cls):
        graph.constant(mro(cls))
        graph.read(graph.constant(cls), Kind.FIELD, "__mro__", mro(cls))


def _check_class(observer: Observer, obj: Any, target: Any, name: str) -> bool:
    """Record what a class check reads; False if native code of a metaclass answers."""
    graph = observer.session.graph
    if type(target) is tuple:
        read_all(graph, target)
        return all([_check_class(observer, obj, part, name) for part in target])
    check = note_class(graph, type(target), name)
    if type(check) is not FunctionType:
        return check in _PLAIN_CHECKS
    register_function(observer.session, check)
    entry = observer.session.annotations.find(check)
    if entry is not None:
        asked = NativeCall(f"{target.__qualname__}.{name}", (target, obj), {})
        apply_entry(observer, entry, asked)
        observer.session.opaque_caller = observer
    return True


_PLAIN_CHECKS: Final = (type.__instancecheck__, type.__subclasscheck__)


def abstract_instance_check(observer: Observer, call: NativeCall) -> None:
    """`ABCMeta.__instancecheck__`."""
    _ask_abstract(observer, call.args[0], type(call.args[1]))


def abstract_subclass_check(observer: Observer, call: NativeCall) -> None:
    """`ABCMeta.__subclasscheck__`."""
    if not is_class(call.args[1]):
        raise StopRecordingError("native-call", call.name)
    _ask_abstract(observer, *call.args)


class AbstractAnswers:
    """What abstract base classes have answered in a run, without code of the user's.

    Each class that is registered with any of them, as imports do, may change answers.
    A hit asks once more then.
    """

    def __init__(self) -> None:
        self._token = abc.get_cache_token()
        # Classes may have an equality of their own.
        self._known: dict[tuple[int, int], tuple[Any, type, bool]] = {}

    def __repr__(self) -> str:
        return "abstract classes"

    def note(self, cls: Any, subclass: type) -> bool:
        """Ask a class; return False if it would have to ask code of the user's."""
        answer = _known_answer(cls, subclass)
        if answer is None:
            return False
        self._known[id(cls), id(subclass)] = cls, subclass, answer
        return True

    def hold(self) -> bool:
        """Return whether all would be the same now."""
        token = abc.get_cache_token()
        if token != self._token:
            for cls, subclass, answer in self._known.values():
                if _known_answer(cls, subclass) is not answer:
                    return False
            self._token = token
        return True


def answers_hold(answers: AbstractAnswers) -> bool:
    """Return whether abstract base classes would answer as they have."""
    return answers.hold()


def _known_answer(cls: Any, subclass: type) -> bool | None:
    """Return what an abstract class answers; None if it asks code of the user's."""
    check = find_in_mro(type(cls), "__subclasscheck__")
    if check is not abc.ABCMeta.__subclasscheck__:
        return None
    if not _is_known_hook(find_in_mro(cls, "__subclasshook__")):
        return None
    if not _has_answered(cls, subclass) and not _asks_known_hooks(cls):
        return None
    answer: bool = abc.ABCMeta.__subclasscheck__(cls, subclass)
    return answer


def read_registrations(graph: RefGraph) -> None:
    """Record that it mattered which classes are registered with abstract ones."""
    token = graph.constant(abc.get_cache_token)
    graph.read(token, Kind.QUERY, (), abc.get_cache_token())


def _ask_abstract(observer: Observer, cls: Any, subclass: type) -> None:
    """Record what an abstract base class answers, from its caches, or unobserved.

    A hook of the user's may ask for state and change it; so the class must have asked
    it before, and a hit asks the class again.
    """
    graph, answers = observer.session.graph, observer.session.abstract_answers
    hook = note_class(graph, cls, "__subclasshook__")
    made = [known for known in map(graph.find, (cls, subclass)) if known is not None]
    # A record holds no class that the run has made: each run makes another one.
    is_external = all(node.external for node in made)
    if is_external and answers.note(cls, subclass):
        graph.read(graph.constant(answers_hold), Kind.QUERY, (answers,), True)
        return
    read_registrations(graph)
    answered = _has_answered(cls, subclass)
    if _is_known_hook(hook) and (answered or _asks_known_hooks(cls)):
        return
    if not answered or not is_external:
        raise StopRecordingError("native-call", f"{cls.__qualname__}.__subclasshook__")
    answer = abc.ABCMeta.__subclasscheck__(cls, subclass)
    question = graph.constant(abc.ABCMeta.__subclasscheck__)
    graph.read(question, Kind.QUERY, (cls, subclass), answer)


def _has_answered(cls: Any, subclass: type) -> bool:
    """Return whether the answer lies in a cache, so that no hook is called."""
    _, true, false, version = abc._get_dump(cls)  # type: ignore[attr-defined]
    reference = weakref.ref(subclass)
    return reference in true or (
        version == abc.get_cache_token() and reference in false
    )


def _asks_known_hooks(cls: Any) -> bool:
    """Return whether an abstract class asks no code of the user's about a new class."""
    seen, work = {id(cls)}, [cls]
    while work:
        asked = work.pop()
        check = find_in_mro(type(asked), "__subclasscheck__")
        if check is type.__subclasscheck__:
            continue  # looks at the order of the bases
        if check is not abc.ABCMeta.__subclasscheck__:
            return False
        if not _is_known_hook(find_in_mro(asked, "__subclasshook__")):
            return False
        registered = abc._get_dump(asked)[0]  # type: ignore[attr-defined]
        classes = (*type.__subclasses__(asked), *(ref() for ref in registered))
        new = [part for part in classes if part is not None and id(part) not in seen]
        seen.update(map(id, new))
        work += new
    return True


def _is_known_hook(hook: Any) -> bool:
    """Return whether a `__subclasshook__` looks at nothing but classes."""
    function = hook.__func__ if type(hook) is classmethod else hook
    if type(function) is not FunctionType:
        return hook is _NO_HOOK
    return function.__code__.co_filename in _LIBRARIES


_NO_HOOK: Final = object.__dict__["__subclasshook__"]
_HOOKED: Final = (
    collections.abc.Sized,
    contextlib.AbstractContextManager,
    contextlib.AbstractAsyncContextManager,
    os.PathLike,
)
# Files whose hooks look at the namespaces of classes only.
_LIBRARIES: Final = frozenset(
    {
        typing.cast.__code__.co_filename,
        *(
            vars(cls)["__subclasshook__"].__func__.__code__.co_filename
            for cls in _HOOKED
        ),
    }
)
