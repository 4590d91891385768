"""Annotations of Python functions of `torch.nn.Module` that run very often."""

from __future__ import annotations

import builtins
import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import (
    Annotation,
    Entries,
    NativeCall,
    Rule,
    Use,
)
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.arguments import OLD_CLASSES
from magweld.frontend.rules.attributes import bear_top, note_lookup, read_found
from magweld.frontend.rules.functions import register_function
from magweld.frontend.rules.natives import record_operator
from magweld.frontend.state.attributes import note_class
from magweld.frontend.state.contents import PLAIN_DICTS, read_all, read_item
from magweld.frontend.state.lookup import Found, Lookup
from magweld.frontend.state.mro import class_dict
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_equal_to_itself_alone

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session


def _operator(func: Any) -> Rule:
    """Return a rule for what makes tensors unseen by the function mode."""

    def rule(observer: Observer, call: NativeCall) -> None:
        record_operator(observer, call.name, func, call.args, call.kwargs)

    return rule


TORCH_CLASSES: Final[Entries] = (
    (torch.from_numpy, _operator(torch.from_numpy)),
    *((cls, _operator(cls)) for cls in OLD_CLASSES),
    (torch.autograd.Variable, _operator(torch.autograd.Variable)),
    (torch.nn.Parameter, _operator(torch.nn.Parameter)),
)


_GETTER: Final[Any] = class_dict(torch.nn.Module)["__getattr__"]
# A function whose code was replaced is observed.
_GETTER_CODE: Final = _GETTER.__code__
# Where it looks, in this order.
_TABLES: Final = ("_parameters", "_buffers", "_modules")
_NUMBERS: Final = (bool, int, float)


def _getattr(observer: Observer, call: NativeCall) -> None:
    """`Module.__getattr__`: a member of a module in one of its tables."""
    session = observer.session
    register_function(session, _GETTER)
    if _read_member(observer, *call.args):
        session.opaque_caller = observer
    else:
        session.opaque_caller = None
        observer.callee = _GETTER


def _read_member(observer: Observer, module: Any, name: str) -> bool:
    """Record the reads of a search that finds something; False is anything else."""
    graph = observer.session.graph
    if type(name) is not str:
        return False
    if type(_GETTER) is not FunctionType or _GETTER.__code__ is not _GETTER_CODE:
        return False
    found = graph.plans.lookup(module, "__dict__")
    namespace = graph.plans.instance_dict(module)
    if found.how is not Lookup.NATIVE_GETTER or namespace is None:
        return False
    searched = []
    for table in _TABLES:
        members: Any = namespace.get(table)
        if type(members) not in PLAIN_DICTS:
            return False
        searched.append((table, members))
        if name in members:
            break
    else:
        return False
    if graph.lifting is not None and type(dict.get(members, name)) in _NUMBERS:
        # What becomes of a number is followed through the frames that have it.
        return False
    read_found(observer, module, "__dict__", found)
    for table, members in searched:
        read_item(graph, namespace, table)
        read_item(graph, members, name)
    return True


_WALK: Final[Any] = class_dict(torch.nn.Module)["modules"]
_NAMED: Final[Any] = class_dict(torch.nn.Module)["named_modules"]
# Functions that were given other code or defaults are observed, and so are those of a
# version of torch that walks otherwise.
_WALKERS: Final = tuple((f, f.__code__, f.__defaults__) for f in (_WALK, _NAMED))
_IS_KNOWN: Final = (
    _WALK.__code__.co_names == ("named_modules",)
    and _NAMED.__code__.co_names == ("set", "add", "_modules", "items", "named_modules")
    and (_WALK.__defaults__, _NAMED.__defaults__) == ((True,), (None, "", True))
)


_MEMBERS: Final = "_modules"
_COMPARED: Final = ("__hash__", "__eq__")


class _Walked(NamedTuple):
    """A module that a walk comes to.

    Attributes:
        module: The module.
        walker: How `named_modules` is found.
        members: How `_modules` is found; its value is a dict.
    """

    module: Any
    walker: Found
    members: Found


def _modules(observer: Observer, call: NativeCall) -> None:
    """`Module.modules`: a generator that walks through the modules below one.

    The walk is recorded when it begins, as a whole. Observed, each module takes eighty
    instructions in three generators, and all that were met before it are compared.
    """
    session = observer.session
    register_function(session, _WALK)
    walked = _walk(session, call)
    if walked is None:
        session.opaque_caller = None
        observer.callee = _WALK
        observer.after = bear_top
        return
    _read_walk(observer, walked)

    def leave_alone(observer: Observer, stack: list[Any]) -> None:
        bear_top(observer, stack)
        session.leave_alone(stack[-1].gi_frame, _NAMED.__code__)

    observer.after = leave_alone


def _walk(session: Session, call: NativeCall) -> list[_Walked] | None:
    """Return what a walk comes to, in order; None if it is to be observed."""
    graph = session.graph
    plain = _IS_KNOWN and len(call.args) == 1 and not call.kwargs
    if not plain or not session.only_guards_reads:
        return None
    if any(f.__code__ is not c or f.__defaults__ is not d for f, c, d in _WALKERS):
        return None
    if "set" in _NAMED.__globals__:
        return None
    found: dict[int, _Walked] = {}
    waiting = [call.args[0]]
    while waiting:
        module = waiting.pop()
        if id(module) in found:
            continue
        walked = _walked(graph, module)
        if walked is None:
            return None
        found[id(module)] = walked
        below = [one for one in walked.members.value.values() if one is not None]
        waiting += below[::-1]
    return list(found.values())


def _walked(graph: RefGraph, module: Any) -> _Walked | None:
    """Return how a walk looks at a module; None if that is not known."""
    kind = type(module)
    if not issubclass(kind, torch.nn.Module):
        return None
    if not is_equal_to_itself_alone(module):
        return None
    walker = graph.plans.lookup(module, _NAMED.__name__)
    members = graph.plans.lookup(module, _MEMBERS)
    if walker.how is not Lookup.METHOD or walker.value is not _NAMED:
        return None
    if members.how is not Lookup.INSTANCE or type(members.value) not in PLAIN_DICTS:
        return None
    if not all(type(key) is str for key in members.value):
        return None
    walked = _Walked(module, walker, members)
    return None if _has_changed(graph, walked) else walked


def _has_changed(graph: RefGraph, one: _Walked) -> bool:
    """Return whether the run has made a module, or written what a walk reads of it."""
    table = one.members.value
    namespace = graph.find(graph.plans.instance_dict(one.module))
    nodes = graph.find(one.module), namespace, graph.find(table)
    if any(node is not None and (not node.external or node.owned) for node in nodes):
        return True
    # Other keys of the instance dict may be written.
    moved = namespace is not None and _MEMBERS in namespace.written
    return moved or id(table) in graph.snapshots


def _read_walk(observer: Observer, walked: list[_Walked]) -> None:
    """Record what a walk reads, and that nothing of it changes while it goes on."""
    graph = observer.session.graph
    for namespace in (_NAMED.__globals__, vars(builtins)):
        graph.constant(namespace)
        read_item(graph, namespace, "set")
    for one in walked:
        kind = type(one.module)
        note_lookup(graph, one.module, _NAMED.__name__, one.walker)
        register_function(observer.session, one.walker.value)
        # A set has those that were met. Who gets a module may ask for its truth.
        for name in (*_COMPARED, "__bool__", "__len__"):
            note_class(graph, kind, name)
        read_found(observer, one.module, _MEMBERS, one.members)
        read_all(graph, one.members.value)
    modules = [one.module for one in walked]
    met = set(modules)
    graph.bear(met)
    graph.distinct_members(met, modules)

    def check() -> None:
        if any(_has_changed(graph, one) for one in walked):
            raise StopRecordingError("opaque-iterator", "modules that change")

    graph.checks.append(check)


TORCH_MODULES: Final[Entries] = ((_GETTER, _getattr), (_WALK, _modules))


DYNAMO_MODULE: Final = "torch._dynamo.mutation_guard"


def dynamo_entries() -> Entries:
    """Return the entries; the module `DYNAMO_MODULE` has been imported.

    Its first compilation patches `nn.Module.__init__`: every new module is noted in a
    weak dictionary that only TorchDynamo reads, so a program that makes modules does
    nothing that anybody else could see.
    """
    tracker = sys.modules[DYNAMO_MODULE].__dict__["GenerationTracker"]
    return ((tracker.__dict__["tag"].__func__, Annotation(rest=Use.KEEP)),)
