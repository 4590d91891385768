"""Owns ends of objects: whether code runs when the last reference to them goes.

A recording keeps what the program has met until it is over. An end that runs code would
come late then, and so would its effects.
"""

from __future__ import annotations

import gc
import types
import weakref
from typing import Any, Final

from magweld.frontend.state.mro import ABSENT, find_in_mro, is_class
from magweld.frontend.state.values import is_scalar
from magweld.kept import KeptByRecords

_SUSPENDED: Final = (
    types.GeneratorType,
    types.CoroutineType,
    types.AsyncGeneratorType,
)
# Objects behind one that is dropped; more are not looked at.
_MOST: Final = 20_000
WATCHED: Final = "the callback of a weak reference"
_CALLBACK: Final = vars(weakref.ref)["__callback__"]
# The module whose dictionaries by weak references hold them.
_NOTES: Final = "torch._dynamo.utils"


def has_finalizer(kind: type) -> bool:
    """Return whether instances of a class have a finalizer in Python."""
    return type(find_in_mro(kind, "__del__")) is types.FunctionType


def code_at_end(obj: Any) -> str:
    """Return what runs when an object goes, "" if nothing does."""
    kind = type(obj)
    if kind in _SUSPENDED:
        return "the end of a generator"
    if find_in_mro(kind, "__del__") is not ABSENT:
        return f"{kind.__qualname__}.__del__"
    return WATCHED if is_watched(obj) else ""


def is_watched(obj: Any) -> bool:
    """Return whether a weak reference to an object has a callback.

    The notes that torch's compiler takes of every module since it was first used are
    not counted: that they go later changes nothing for a program.
    """
    return any(map(_has_callback, weakref.getweakrefs(obj)))


def _has_callback(reference: Any) -> bool:
    if issubclass(type(reference), weakref.ref):
        callback = _CALLBACK.__get__(reference)
        if type(callback) is types.FunctionType:
            return callback.__globals__.get("__name__") != _NOTES
        return callback is not None
    # A proxy refers to nothing else, and its attributes are those of the object.
    return bool(gc.get_referents(reference))


def code_at_end_of_all(dropped: Any) -> str:
    """Return what may run when an object goes with all that hangs on it, or "".

    What else holds a part of it is not looked at: that part would stay.
    """
    seen = {id(dropped)}
    work = [dropped]
    while work:
        obj = work.pop()
        reason = code_at_end(obj)
        if reason:
            return reason
        for part in referents_of(obj):
            if id(part) not in seen and not _stays(part):
                seen.add(id(part))
                work.append(part)
        if len(seen) > _MOST:
            return f"the end of more than {_MOST} objects"
    return ""


def _stays(obj: Any) -> bool:
    kind = type(obj)
    kept = kind is types.ModuleType or issubclass(kind, KeptByRecords)
    return kept or is_scalar(obj) or is_class(obj)


def referents_of(obj: Any) -> list[Any]:
    """Return the objects that one refers to; of a function, what it alone holds."""
    if type(obj) is not types.FunctionType:
        return gc.get_referents(obj)
    # Its globals stay.
    parts = (obj.__closure__, obj.__defaults__, obj.__kwdefaults__, obj.__dict__)
    return [part for part in parts if part]
