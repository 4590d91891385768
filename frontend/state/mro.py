"""Owns searching classes without asking a metaclass or a descriptor."""

from __future__ import annotations

from collections.abc import Iterator
from types import MemberDescriptorType
from typing import Any, Final, NamedTuple

_MRO: Final = type.__dict__["__mro__"]
_TYPE_DICT: Final = type.__dict__["__dict__"]
_IMMUTABLE_TYPE: Final = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


class Absent:
    """The outcome of a read that found nothing."""

    def __repr__(self) -> str:
        return "<absent>"


ABSENT: Final = Absent()


def is_class(obj: object) -> bool:
    """Return whether `obj` is a class, without asking the object."""
    return issubclass(type(obj), type)


def mro(cls: type) -> tuple[type, ...]:
    """Return the method resolution order without asking a metaclass."""
    order: tuple[type, ...] = _MRO.__get__(cls)
    return order


def class_dict(cls: type) -> Any:
    """Return the namespace of a class without asking a metaclass."""
    return _TYPE_DICT.__get__(cls)


def is_immutable(cls: type) -> bool:
    """Return whether attributes of the class itself can never change."""
    return bool(cls.__flags__ & _IMMUTABLE_TYPE)


class ClassKey(NamedTuple):
    """Stands in a key for a class that its metaclass may hash by code of the program.

    Attributes:
        number: Its id.
        name: Its name.
    """

    number: int
    name: str


def key_of_class(cls: type) -> type | ClassKey:
    """Return what stands for a class in keys that tell kinds of calls apart."""
    if type(cls) is type:
        return cls
    return ClassKey(id(cls), name_of_class(cls))


def name_of_class(cls: type) -> str:
    """Return the name of a class without asking its metaclass."""
    return str(type.__dict__["__qualname__"].__get__(cls))


def find_in_mro(cls: type, name: str) -> Any:
    """Return the first `name` in the namespaces of `cls` and its bases, or ABSENT."""
    for base in mro(cls):
        namespace = class_dict(base)
        if name in namespace:
            return namespace[name]
    return ABSENT


def target_slot(cls: type) -> MemberDescriptorType | None:
    """Return where a traced program keeps what it stands for; None for other types."""
    slot = find_in_mro(cls, "_magweld_target")
    return slot if type(slot) is MemberDescriptorType else None


def python_slots(cls: type) -> Iterator[MemberDescriptorType]:
    """Yield the slots that a class and its bases written in Python have."""
    for base in mro(cls):
        for member in () if is_immutable(base) else class_dict(base).values():
            if type(member) is MemberDescriptorType:
                yield member


def find_own(cls: type, name: str) -> Any:
    """Return `name` in the namespace of the class itself, or ABSENT."""
    return class_dict(cls).get(name, ABSENT)


def find_after(cls: type, start: type, name: str) -> Any:
    """Return the first `name` in the bases of `cls` behind `start`, or ABSENT."""
    order = mro(cls)
    for base in order[order.index(start) + 1 :]:
        namespace = class_dict(base)
        if name in namespace:
            return namespace[name]
    return ABSENT
