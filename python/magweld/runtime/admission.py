"""Owns the check of a call's arguments against what a program was compiled for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch._C._dynamo.guards import TensorGuards

from magweld.runtime.errors import InputMismatchError
from magweld.runtime.layout import Signature
from magweld.runtime.memory import HOST_DEVICE


class Likeness:
    """Knows tensors by those that were seen first: one call of native code tells.

    Class, dispatch keys, dtype, device, shape, strides and whether gradients are
    wanted agree, of each.
    """

    # No code of somebody else runs when their memory is asked for.
    _PLAIN = (Tensor, torch.nn.Parameter)

    def __init__(self) -> None:
        self._alike: Callable[..., bool] | None = None
        self._count = 0

    def learn(self, tensors: Sequence[Tensor]) -> None:
        """Remember tensors, if they are the first and of torch's own classes."""
        if self._alike is None and all(type(t) in self._PLAIN for t in tensors):
            self._count = len(tensors)
            self._alike = TensorGuards(
                *tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None
            ).check

    def knows(self, values: Sequence[object]) -> bool:
        """Return whether values are tensors like those that were remembered.

        Neither this nor the tensors are seen by a mode of torch unless one is active.
        """
        # The guards raise an error for another number of values.
        return (
            self._alike is not None
            and len(values) == self._count
            and self._alike(*values)
        )


class Admission:
    """Turns the arguments of a call into addresses, or refuses them.

    Generated code reads raw memory, so every property it relies on is checked on
    every call: parameters can change under the same tensor object.

    Attributes:
        knows: Whether tensors are known to be like those that were admitted first.
        has_admitted: Whether any were.
    """

    def __init__(
        self, expected: Sequence[Signature], device: torch.device = HOST_DEVICE
    ) -> None:
        self._expected = tuple(expected)
        self._device = device
        self._pairs = tuple((s.shape, s.dtype) for s in expected)
        self._complex = [i for i, s in enumerate(expected) if s.dtype.is_complex]
        self._likeness = Likeness()
        self.knows = self._likeness.knows
        self.has_admitted = False

    def addresses(self, arguments: Sequence[Tensor]) -> list[int]:
        """Return the data pointers of contiguous tensors of the device, in order.

        Raises:
            InputMismatchError: An argument is not what the program expects.
        """
        if len(arguments) != len(self._pairs):
            raise InputMismatchError(
                -1, f"{len(arguments)} arguments, expected {len(self._pairs)}"
            )
        pointers = []
        try:
            for tensor, (shape, dtype) in zip(arguments, self._pairs, strict=True):
                if (
                    tensor.shape != shape
                    or tensor.dtype is not dtype
                    or not tensor.is_contiguous()
                    or tensor.device != self._device
                    or tensor.is_neg()
                ):
                    raise self._mismatch(arguments)
                pointers.append(tensor.data_ptr())
            if any(arguments[i].is_conj() for i in self._complex):
                raise self._mismatch(arguments)
        except (AttributeError, RuntimeError) as error:
            # Other objects, sparse and wrapped tensors: no such method or no memory.
            raise self._mismatch(arguments) from error
        self._likeness.learn(arguments)
        self.has_admitted = True
        return pointers

    def _mismatch(self, arguments: Sequence[Tensor]) -> InputMismatchError:
        pairs = zip(arguments, self._expected, strict=True)
        for index, (argument, expected) in enumerate(pairs):
            problem = describe_difference(argument, expected, self._device)
            if problem:
                return InputMismatchError(index, f"argument {index} {problem}")
        return InputMismatchError(-1, "an argument has no memory of its own")


def describe_difference(
    argument: object, expected: Signature, device: torch.device = HOST_DEVICE
) -> str:
    """Say how an object differs from a plain contiguous tensor; "" if not."""
    if not isinstance(argument, Tensor):
        return f"is a {type(argument).__name__}, not a tensor"
    if argument.layout is not torch.strided:
        return f"has layout {argument.layout}"
    if argument.device != device:
        return f"is on {argument.device}, expected {device}"
    if argument.shape != expected.shape:
        return f"has shape {list(argument.shape)}, expected {list(expected.shape)}"
    if argument.dtype != expected.dtype:
        return f"has dtype {argument.dtype}, expected {expected.dtype}"
    if not argument.is_contiguous():
        return f"has strides {list(argument.stride())} and is not contiguous"
    if argument.is_neg() or argument.is_conj():
        return "is a lazily negated or conjugated view"
    return ""
