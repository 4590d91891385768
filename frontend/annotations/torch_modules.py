"""Annotations of Python functions of `torch.nn.Module` that run very often."""

from __future__ import annotations

import sys
from collections import OrderedDict
from types import FunctionType
from typing import Any, Final

import torch

from magweld.frontend.monitor.annotation import (
    Annotation,
    Entries,
    NativeCall,
    Rule,
    Use,
)
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.arrays import OLD_CLASSES
from magweld.frontend.rules.attributes import read_found
from magweld.frontend.rules.functions import register_function
from magweld.frontend.rules.natives import record_operator
from magweld.frontend.state.contents import read_item
from magweld.frontend.state.lookup import Lookup
from magweld.frontend.state.mro import class_dict


def _operator(func: Any) -> Rule:
    """Return a rule for what makes tensors unseen by the function mode."""

    def rule(observer: Observer, call: NativeCall) -> None:
        record_operator(observer, call.name, func, call.args, call.kwargs)

    return rule


def _script_function(observer: Observer, call: NativeCall) -> None:
    function, *args = call.args
    record_operator(observer, call.name, function, tuple(args), call.kwargs)


TORCH_CLASSES: Final[Entries] = (
    (torch.from_numpy, _operator(torch.from_numpy)),
    *((cls, _operator(cls)) for cls in OLD_CLASSES),
    (torch.autograd.Variable, _operator(torch.autograd.Variable)),
    (torch.nn.Parameter, _operator(torch.nn.Parameter)),
    (class_dict(torch.jit.ScriptFunction)["__call__"], _script_function),
)


_GETTER: Final[Any] = class_dict(torch.nn.Module)["__getattr__"]
# A function whose code was replaced is observed.
_GETTER_CODE: Final = _GETTER.__code__
# Where it looks, in this order.
_TABLES: Final = ("_parameters", "_buffers", "_modules")
_PLAIN: Final = (dict, OrderedDict)
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
        if type(members) not in _PLAIN:
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


TORCH_MODULES: Final[Entries] = ((_GETTER, _getattr),)


DYNAMO_MODULE: Final = "torch._dynamo.mutation_guard"


def dynamo_entries() -> Entries:
    """Return the entries; the module `DYNAMO_MODULE` has been imported.

    Its first compilation patches `nn.Module.__init__`: every new module is noted in a
    weak dictionary that only TorchDynamo reads, so a program that makes modules does
    nothing that anybody else could see.
    """
    tracker = sys.modules[DYNAMO_MODULE].__dict__["GenerationTracker"]
    return ((tracker.__dict__["tag"].__func__, Annotation(rest=Use.KEEP)),)
