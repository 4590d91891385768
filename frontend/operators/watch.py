"""Owns the view below autograd: writes, random numbers and values read by operators."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode

from magweld.frontend.operators.infallible import raises_for_no_values
from magweld.storages import count_writes_to_lists, storage_of


class _Traits(NamedTuple):
    """What the schema of an operator says."""

    dynamic: bool  # the shape of a result depends on values
    indexes: bool  # its shape is dynamic only with a mask as an index
    reads: bool  # a Python value comes out of a tensor
    random: bool  # consumes numbers of a generator
    written: tuple[int, ...]  # positions of arguments that are written
    written_names: tuple[str, ...]
    normalizes: bool  # keeps running statistics
    listed: bool  # returns a list of tensors
    fallible: bool  # may raise for some values of tensors
    floating: bool  # is known not to raise for floats alone


# Training updates the running statistics, arguments 3 and 4; the schema does not tell
# it. Argument 5 says whether it is training.
_BATCH_NORMS = frozenset(
    {"aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"}
)
_STATISTICS = (3, 4)
_TRAINING = 5

# Makes a number of a tensor of one element.
_NUMBER = torch.ops.aten._local_scalar_dense.default


# Operators of dynamic shape without the tag.
_DYNAMIC = frozenset(
    {
        "aten::_pack_padded_sequence",
        "aten::_pad_packed_sequence",
        "aten::_coalesce",
        "aten::_to_sparse",
    }
)


def _are_integers(args: Any) -> bool:
    return not any(
        arg.is_floating_point() or arg.is_complex()
        for arg in args
        if isinstance(arg, torch.Tensor)
    )


def _selects(args: Any) -> bool:
    """Return whether a mask selects the elements: the shape follows from it."""
    return any(
        index is not None and index.dtype in (torch.bool, torch.uint8)
        for index in args[1]
    )


def _is_dynamic(traits: _Traits, args: Any) -> bool:
    """Return whether the shape of a result follows from values."""
    return traits.dynamic and not (traits.indexes and not _selects(args))


# What is no operator of one schema, e.g. `cond`, runs code that may do anything.
_UNKNOWN = _Traits(
    dynamic=True,
    indexes=False,
    reads=True,
    random=True,
    written=(),
    written_names=(),
    normalizes=False,
    listed=False,
    fallible=True,
    floating=True,
)


def _traits(func: Any) -> _Traits:
    if type(func) is not OpOverload:
        return _UNKNOWN
    schema = func._schema
    written = [
        index
        for index, argument in enumerate(schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    names = tuple(schema.arguments[index].name for index in written)
    harmless, floating = raises_for_no_values(func)
    return _Traits(
        dynamic=torch.Tag.dynamic_output_shape in func.tags or schema.name in _DYNAMIC,
        indexes=schema.name == "aten::index",
        reads=torch.Tag.data_dependent_output in func.tags,
        random=torch.Tag.nondeterministic_seeded in func.tags,
        written=tuple(written),
        written_names=names,
        normalizes=schema.name in _BATCH_NORMS,
        listed=any("List" in item.type.kind() for item in schema.returns),
        fallible=not harmless,
        floating=floating,
    )


@functools.cache
def _cast_by(key: Any) -> frozenset[str]:
    """Return the names of the operators that autocast casts the arguments of."""
    found = torch._C._dispatch_get_registrations_for_dispatch_key(key.name)
    return frozenset(name.partition("::")[2].partition(".")[0] for name in found)


BeforeWrite = Callable[[torch.Tensor, Any], None]


class RanBelow(NamedTuple):
    """An operator that has run.

    Attributes:
        func: The operator.
        args: What it took.
        kwargs: The same, by name.
        result: What it gave.
        traits: What its schema says.
        written: Storages that it has written.
    """

    func: Any
    args: Any
    kwargs: Any
    result: Any
    traits: _Traits
    written: set[int]

    @property
    def decides(self) -> bool:
        """Whether a value or the shape of a result follows from values."""
        return self.traits.reads or _is_dynamic(self.traits, self.args)


Below = Callable[[RanBelow], None]
_Mode: Any = TorchDispatchMode  # its constructor and subclass hook have no types


# The key below which each device's operators were cast.
_AUTOCAST = (
    ("cpu", torch._C.DispatchKey.AutocastCPU),
    ("cuda", torch._C.DispatchKey.AutocastCUDA),
)


class OperatorWatch(_Mode):  # type: ignore[misc]
    """Notes what the operators below one torch call do.

    Attributes:
        dynamic: Whether one of them had a result of dynamic shape.
        reads: Whether one of them made a Python value of a tensor.
        compares: Whether such a value was no number in a tensor.
        numbers: The numbers in tensors that they read, by the ids of the tensors.
        random: Whether one of them consumed random numbers.
        listed: Whether one of them had a list of tensors as a result.
        fallible: Whether one of them may raise for some values.
        written: Storages that they wrote, by address.
        before_write: Called with a tensor that is about to be written, and with the
            arguments of the operator.
        made: Collects the storages that operators make, None if nobody asks.
        below: Gets each operator that has run, if anybody asks.
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[Any, _Traits] = {}
        self.before_write: BeforeWrite | None = None
        self.made: set[int] | None = None
        self.below: Below | None = None
        self.reset()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # The default wraps the handler so that its first call imports a compiler.
        return False

    def reset(self, name: str = "") -> None:
        """Forget what was noted, and see what autocast is to do in operators.

        Args:
            name: Of the torch function that is about to run.
        """
        # Below the mode it looks as if it were off. It is where autocast has cast what
        # the function takes.
        self._casts = [
            key
            for kind, key in _AUTOCAST
            if torch.is_autocast_enabled(kind) and name not in _cast_by(key)
        ]
        self.dynamic = False
        self.reads = False
        self.compares = False
        self.numbers: dict[int, Any] = {}
        self.random = False
        self.listed = False
        self.fallible = False
        self.written: set[int] = set()

    # Else they raise under this mode, where eager torch runs them.
    supports_higher_order_operators = True

    def __enter__(self) -> Self:
        # The mode is no matter of the program's: the flags that tell of modes, which it
        # may read and which modes of its own put back, stay as they are.
        _push_mode(self)
        return self

    def __exit__(self, *error: object) -> None:
        _pop_mode()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Note one operator and run it."""
        kwargs = kwargs or {}
        if _is_overridden((*args, *kwargs.values())):
            # Modes and classes of the program have had the call, or are not to see it:
            # torch calls operators past them in transforms and backward passes.
            with torch._C.DisableTorchFunction():
                return self._note(func, args, kwargs)
        return self._note(func, args, kwargs)

    def _note(self, func: Any, args: Any, kwargs: Any) -> Any:
        traits = self._known.get(func)
        if traits is None:
            traits = self._known[func] = _traits(func)
        if self.below is None:
            return self._run_noted(func, args, kwargs, traits)
        before, self.written = self.written, set()
        result = self._run_noted(func, args, kwargs, traits)
        written, self.written = self.written, before | self.written
        self.below(RanBelow(func, args, kwargs, result, traits, written))
        return result

    def _run_noted(self, func: Any, args: Any, kwargs: Any, traits: _Traits) -> Any:
        self.dynamic |= _is_dynamic(traits, args)
        self.reads |= traits.reads
        self.compares |= traits.reads and func is not _NUMBER
        self.random |= traits.random
        self.listed |= traits.listed
        self.fallible |= traits.fallible or (traits.floating and _are_integers(args))
        for index in traits.written:
            if index < len(args):
                self._note_write(args[index], args)
        for name in traits.written_names:
            self._note_write(kwargs.get(name), args)
        if traits.normalizes and args[_TRAINING]:
            for index in _STATISTICS:
                self._note_write(args[index], args)
        if func is _NUMBER and not isinstance(args[0], torch.Tensor):
            return args[0]  # torch shows a number of a traced function's code as one
        result = self._run(func, args, kwargs)
        if func is _NUMBER:
            self.numbers.setdefault(id(args[0]), result)
        if self.made is not None:
            self.made |= _storages(result) - _storages((args, tuple(kwargs.values())))
        return result

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator with autocast as it is where nobody looks.

        Torch leaves it out below a mode that sees operators, and so it would not cast
        in operators that call others. What they themselves take has been cast before.
        """
        with contextlib.ExitStack() as stack:
            for key in self._casts:
                stack.enter_context(torch._C._SetExcludeDispatchKeyGuard(key, False))
            result = func(*args, **kwargs)
        count_writes_to_lists(func, args)
        return result

    def _note_write(self, target: Any, args: Any) -> None:
        if isinstance(target, torch.Tensor):
            self.written.add(storage_of(target))
            if self.before_write is not None:
                self.before_write(target, args)
        elif isinstance(target, list):
            for item in target:
                self._note_write(item, args)


def _is_overridden(given: tuple[Any, ...]) -> bool:
    """Return whether a mode or a class takes the place of torch's functions."""
    if torch._C._has_torch_function(given):
        return True
    return any(
        torch._C._has_torch_function(one) for one in given if isinstance(one, list)
    )


def _storages(obj: Any) -> set[int]:
    """Return the storages of the tensors in nested sequences."""
    if isinstance(obj, torch.Tensor):
        return {storage_of(obj)}
    if isinstance(obj, (tuple, list)):
        return set().union(*map(_storages, obj))
    return set()
