"""Owns the classes of Python values: scalars, identities, everything else."""

from __future__ import annotations

import enum
import random
import struct
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final

from magweld.frontend.state.mro import ABSENT, find_in_mro, is_class, name_of_class

SCALAR_TYPES: Final = frozenset(
    {
        type(None),
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        type(Ellipsis),
        type(NotImplemented),
    }
)

# A longer integer is not written out.
_MOST_BITS: Final = 1024

# Objects whose meaning is their identity: what can be read of them is either fixed
# at creation or read through an edge of its own.
_IDENTITY_TYPES: Final = frozenset(
    {
        types.CodeType,
        types.ModuleType,
        types.WrapperDescriptorType,
        types.MethodDescriptorType,
        types.ClassMethodDescriptorType,
        types.GetSetDescriptorType,
        types.MemberDescriptorType,
        types.GenericAlias,
        types.UnionType,
        property,
        staticmethod,
        classmethod,
        object,
    }
)


# Frequent types of which the tests below need not be asked.
_NO_IDENTITY_TYPES: Final = frozenset(
    {
        *SCALAR_TYPES,
        *(dict, list, set, frozenset, OrderedDict, deque),
        *(types.FunctionType, types.MethodType, types.CellType),
    }
)

# Types of a library that the core must not import, as (module, name).
_NUMPY_SCALARS: Final = """
    bool bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 longlong ulonglong
    float16 float32 float64 longdouble complex64 complex128 clongdouble
"""
_VALUE_TYPE_NAMES: Final = frozenset(
    {
        *(("torch", name) for name in ("device", "finfo", "iinfo")),
        *(("numpy", name) for name in _NUMPY_SCALARS.split()),
    }
)
_VALUE_NAMES: Final = frozenset(name for _, name in _VALUE_TYPE_NAMES)
_IDENTITY_TYPE_NAMES: Final = frozenset(
    {
        ("torch", "dtype"),
        ("torch", "layout"),
        ("numpy", "ufunc"),
        ("numpy", "_ArrayFunctionDispatcher"),
        ("torch", "memory_format"),
        ("torch.jit", "torch.jit.ScriptFunction"),
    }
)
_IDENTITY_MODULES: Final = frozenset(module for module, _ in _IDENTITY_TYPE_NAMES)


def is_scalar(obj: object) -> bool:
    """Return whether type and value say all about `obj`."""
    kind = type(obj)
    return kind in SCALAR_TYPES or (
        kind.__name__ in _VALUE_NAMES and _name_of(kind) in _VALUE_TYPE_NAMES
    )


def is_immutable_value(obj: object) -> bool:
    """Return whether all native attributes of `obj` follow from what is guarded."""
    kind = type(obj)
    return is_scalar(obj) or (
        kind.__module__ == "torch" and _name_of(kind) in _IDENTITY_TYPE_NAMES
    )


def is_numpy_scalar(obj: object) -> bool:
    """Return whether the object is a number of numpy, which is not imported."""
    kind = type(obj)
    return kind.__module__ == "numpy" and is_scalar(obj)


def _name_of(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__name__


def is_static_builtin(obj: object) -> bool:
    """Return whether `obj` is a built-in function that belongs to no instance."""
    if type(obj) is not types.BuiltinFunctionType:
        return False
    owner = obj.__self__
    if owner is None or type(owner) is types.ModuleType or is_class(owner):
        return True
    # Extension modules may bind their functions to a record of their own.
    return find_in_mro(type(owner), obj.__name__) is ABSENT


def is_identity(obj: object) -> bool:
    """Return whether identity says all about `obj`; functions are not among them."""
    kind = type(obj)
    if kind in _NO_IDENTITY_TYPES:
        return False
    if kind in _IDENTITY_TYPES or issubclass(kind, (type, types.ModuleType)):
        return True
    if issubclass(kind, enum.Enum) or kind.__module__ == "typing":
        return True
    if kind is tuple and not obj:
        return True  # there is only one
    if kind.__module__ in _IDENTITY_MODULES and _name_of(kind) in _IDENTITY_TYPE_NAMES:
        return True
    if kind.__module__ == "numpy.dtypes":
        return True
    return is_static_builtin(obj) or _draws(obj)


def _draws(obj: Any) -> bool:
    # Generators, and what is bound to them: draws are recorded with the generator.
    kind = type(obj)
    if kind is types.BuiltinFunctionType:
        return type(obj.__self__) is random.Random
    return kind is random.Random or kind.__name__ in _DRAWING_TYPE_NAMES


_DRAWING_TYPE_NAMES: Final = ("RandomState", "cython_function_or_method")


def same_scalar(left: object, right: object) -> bool:
    """Return whether two scalars agree in type and in every bit of their value."""
    kind = type(left)
    if kind is not type(right):
        return False
    bits = bits_reader(kind)
    if bits is not None:
        return bits(left) == bits(right)
    return left is right or bool(left == right)


def text_of_scalar(value: object) -> str:
    """Return the text of a scalar; of a very long integer how long it is.

    Python writes out no integers of thousands of digits, and nobody could read them.
    """
    if type(value) is int and value.bit_length() > _MOST_BITS:
        return f"<an integer of {value.bit_length()} bits>"
    return repr(value)


def exact(value: object) -> tuple[type, Any]:
    """Return what is equal for scalars of one type with the same bits, and hashable."""
    kind = type(value)
    bits = bits_reader(kind)
    return kind, value if bits is None else bits(value)


def bits_reader(kind: type) -> Callable[[Any], bytes] | None:
    """Return what gives the bytes of scalars of a type whose equality is not exact.

    Zeros and NaNs are told apart by it. None for the other types.
    """
    return numpy_bits if kind.__module__ == "numpy" else _BITS.get(kind)


# Their names are what `record.source("guards")` shows.


def numpy_bits(value: Any) -> bytes:
    """Return the bytes of a number of numpy."""
    data: bytes = value.tobytes()
    return data


def float_bits(value: float) -> bytes:
    """Return the bytes of a float."""
    return struct.pack("d", value)


def complex_bits(value: complex) -> bytes:
    """Return the bytes of a complex number."""
    return struct.pack("dd", value.real, value.imag)


_BITS: Final[dict[type, Callable[[Any], bytes]]] = {
    float: float_bits,
    complex: complex_bits,
}


def compares_by_code(key: Any) -> bool:
    """Return whether a look-up that meets `key` may run code of the user's."""
    if type(key) in (tuple, frozenset):
        return any(map(compares_by_code, key))
    equality = find_in_mro(type(key), "__eq__")
    return type(equality) is types.FunctionType and not is_plain_key(key)


def text_of_key(key: Any) -> str:
    """Return a short text for a key of a dict, or for any object.

    None but scalars are asked for it: that could run code of the user's.
    """
    kind = type(key)
    if is_scalar(key):
        return text_of_scalar(key)
    if kind is tuple:
        return f"({', '.join(map(text_of_key, key))})"
    if is_class(key):
        return name_of_class(key)
    if issubclass(kind, enum.Enum):
        return f"{kind.__qualname__}.{object.__getattribute__(key, '_name_')}"
    return f"<{kind.__qualname__}>"


def is_plain_key(key: Any) -> bool:
    """Return whether hashing and comparing `key` runs no code of the user's."""
    if is_scalar(key):
        return True
    if type(key) in (tuple, frozenset):
        return all(is_plain_key(item) for item in key)
    if type(key) is weakref.ref:
        target = key()
        return target is not None and is_plain_key(target)
    kind = type(key)
    hashing, equality = find_in_mro(kind, "__hash__"), find_in_mro(kind, "__eq__")
    if issubclass(kind, enum.Enum):
        return hashing in _ENUM_HASHES and equality in _NATIVE_EQUALITIES
    if _names_function(hashing) in _IDENTITY_HASHES:
        return True  # no two living objects have one hash, so none are compared
    return is_equal_to_itself_alone(key)


def is_equal_to_itself_alone(obj: object) -> bool:
    """Return whether an object is hashed and compared by its identity."""
    kind = type(obj)
    return (
        find_in_mro(kind, "__hash__") is object.__hash__
        and find_in_mro(kind, "__eq__") is object.__eq__
    )


def is_hashed_by_address(obj: object) -> bool:
    """Return whether the hash of an object, or of what is in it, is its address."""
    if type(obj) in (tuple, frozenset):
        return any(map(is_hashed_by_address, obj))  # type: ignore[call-overload]
    if is_scalar(obj):
        return False
    hashing = find_in_mro(type(obj), "__hash__")
    return hashing is object.__hash__ or _names_function(hashing) in _IDENTITY_HASHES


def _names_function(function: Any) -> tuple[str, str]:
    if type(function) is not types.FunctionType:
        return "", ""
    return function.__module__, function.__qualname__


# Of libraries that the core must not import: hashes that are the identity.
_IDENTITY_HASHES: Final = (("torch._tensor", "Tensor.__hash__"),)
_ENUM_HASHES: Final = (enum.Enum.__hash__, int.__hash__, str.__hash__)
_NATIVE_EQUALITIES: Final = (object.__eq__, int.__eq__, str.__eq__)
