"""Annotations of numpy: pure functions of guarded arrays and scalars."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import Entries, NativeCall, PureRule, members
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.attributes import adopt_top
from magweld.frontend.rules.operators import record_on_arrays
from magweld.frontend.rules.protocols import read_value
from magweld.frontend.state.natives import check_buffer_write, is_array, read_form

# Keywords that make a function write to an argument or call back.
_REFUSED: Final = ("out", "where", "initial", "like", "key")


def _read(observer: Observer, argument: Any) -> None:
    if observer.session.operators.is_tensor(type(argument)):
        raise StopRecordingError("tensor-value", "argument of a numpy function")
    read_value(observer, argument)


def _pure(observer: Observer, call: NativeCall) -> None:
    """A function whose result follows from the values of its arguments."""
    for name, value in call.kwargs.items():
        if name in _REFUSED and value is not None:
            raise StopRecordingError("native-call", f"{call.name} with {name}=")
        _read(observer, value)
    for argument in call.args:
        _read(observer, argument)
    # Parts of numpy are written in Python; they are no part of the program.
    observer.session.opaque_caller = observer
    observer.after = adopt_top


def _form(observer: Observer, call: NativeCall) -> None:
    """What an array is apart from its elements."""
    array, *assigned = call.args
    if assigned:
        raise StopRecordingError("native-call", f"{call.name} is set")
    if not is_array(array):
        _pure(observer, call)
        return
    if call.name.rpartition(".")[2] in ("dtype", "ndim"):
        twin = observer.session.operators.twin(array)
        if twin is not None:
            observer.session.operators.read_form(twin)
            observer.after = adopt_top
            return
    read_form(observer.session.graph, array)
    observer.after = adopt_top


def _dispatched(observer: Observer, call: NativeCall) -> None:
    """A call of an object of numpy that stands for a function: by its name."""
    function, *args = call.args
    if function not in _FUNCTIONS:
        raise StopRecordingError("native-call", call.name)
    _pure(observer, NativeCall(call.name, tuple(args), call.kwargs))


def _is_numeric(function: Any, kwargs: Any) -> bool:
    """Return whether a ufunc gives an array of its arguments' form, without objects."""
    numeric = any("O" not in loop for loop in function.types)
    plain = numeric and function.nout == 1 and function.signature is None
    return plain and kwargs.keys() <= {"dtype"}


def _universal(observer: Observer, call: NativeCall) -> None:
    """A call of a ufunc; a positional argument behind the inputs is an output."""
    function, *args = call.args
    if len(args) > function.nin:
        raise StopRecordingError("native-call", f"{function.__name__} with an output")
    if _is_numeric(function, call.kwargs):
        for value in call.kwargs.values():
            _read(observer, value)
        if record_on_arrays(observer, function, tuple(args), call.kwargs):
            return
    _pure(observer, NativeCall(call.name, tuple(args), call.kwargs))


def _write(observer: Observer, call: NativeCall) -> None:
    target, *args = call.args
    for argument in (*args, *call.kwargs.values()):
        _read(observer, argument)
    if not is_array(target):
        raise StopRecordingError("native-call", call.name)
    check_buffer_write(observer.session.graph, target)
    observer.after = adopt_top


_NAMES: Final = """
    abs all allclose amax amin any append apply_along_axis arange argmax argmin
    argsort argwhere around array array_equal asarray asfarray atleast_1d atleast_2d
    average bincount broadcast_shapes broadcast_to ceil clip column_stack concatenate
    convolve corrcoef cov cross cumprod cumsum deg2rad diag diff digitize divide dot
    dstack einsum empty_like expand_dims eye flip floor full full_like geomspace
    histogram hstack hypot identity indices inner interp isclose isfinite isnan isscalar
    kron lexsort linspace logspace matmul max maximum mean median meshgrid min minimum
    moveaxis nan_to_num ndim nonzero ones ones_like outer pad percentile polyfit polyval
    prod ptp quantile rad2deg ravel repeat reshape roll rollaxis rot90 round
    searchsorted shape sign size sort split sqrt square squeeze stack std sum swapaxes
    take tensordot tile trace transpose tri tril tril_indices triu triu_indices unique
    unravel_index var vdot vstack where zeros zeros_like result_type can_cast
    promote_types min_scalar_type ascontiguousarray
"""
_FUNCTIONS: Final = frozenset(
    function
    for name in _NAMES.split()
    if type(function := getattr(np, name, np.add)) is not np.ufunc
)
_METHODS: Final = """
    all any argmax argmin argsort astype clip conj conjugate copy cumprod cumsum
    diagonal dot flatten item max mean min nonzero prod ravel repeat reshape round
    searchsorted squeeze std sum swapaxes take tobytes tolist trace transpose var view
    __copy__ __bool__ __float__ __int__ __index__ __getitem__ __array__
    is_integer as_integer_ratio bit_count conjugate
"""
_WRITES: Final = "fill sort put itemset partition __setitem__"
_PARTS: Final = "T base flat imag real"
_FORM: Final = "dtype itemsize nbytes ndim shape size strides __len__"
_DTYPE: Final = "char itemsize kind name names num str type alignment byteorder"


_SCALARS: Final[tuple[Any, ...]] = tuple(
    kind
    for kind in vars(np).values()
    if isinstance(kind, type) and issubclass(kind, np.generic)
)
_DISPATCHER: Final[Any] = type(np.mean)

ARRAYS: Final[Entries] = (
    (np.ufunc.__call__, PureRule(_universal)),
    (_DISPATCHER.__call__, PureRule(_dispatched)),
    *((function, _pure) for function in _FUNCTIONS),
    *((kind, _pure) for kind in (*_SCALARS, np.dtype, np.finfo, np.iinfo)),
    *members(
        np.ndarray, {_pure: f"{_METHODS} {_PARTS}", _form: _FORM, _write: _WRITES}
    ),
    *members(np.dtype, {_pure: _DTYPE}),
    *(
        member
        for kind in (np.generic, *_SCALARS)
        for member in members(kind, {_pure: f"{_METHODS} {_PARTS} {_FORM}"})
    ),
)
