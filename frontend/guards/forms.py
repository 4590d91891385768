"""Owns the quick check of tensors: most are compared word by word, by native code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from llvmlite import ir
from torch._C._dynamo.guards import TensorGuards

from magweld.codegen.form_check import (
    MOST_TENSORS,
    NAME,
    KnownForm,
    TensorPlaces,
    define_form_check,
    form_data,
)
from magweld.codegen.python_functions import TAKES_MANY, NativeFunction
from magweld.tensor_words import (
    AUTOGRAD,
    KEYS,
    MOST_DIMS,
    WORDS,
    TensorWords,
    masks_of,
    tensor_words,
    words_of,
)

_CLASSES: Final = (torch.Tensor, torch.nn.Parameter)
# Torch must be asked about so many tensors less: the other function is one call more.
_FEW: Final = 2


@dataclass(frozen=True)
class QuickCheck:
    """Two functions that tell together what torch tells of tensors, in less time.

    Both give true only where torch does.

    Attributes:
        alike: Takes all tensors, and compares most.
        asked: Numbers of the tensors that torch is asked about: those that are not
            compared, and one for each set of dispatch keys of others, as torch also
            tells what the thread does to such a set.
        others: How many of these are not compared; they come first.
        check: Asks torch; it must not be called for nested tensors.
    """

    alike: Callable[..., bool]
    asked: tuple[int, ...]
    others: int
    check: Callable[..., bool]


def quick_check(
    tensors: Sequence[torch.Tensor], lifted: Sequence[frozenset[int]]
) -> QuickCheck | None:
    """Return a quick check; None if there is none, or torch takes about as long.

    Args:
        lifted: Dimensions of each whose sizes, and so all strides, are not checked.
    """
    places = tensor_words()
    if places is None or len(tensors) > MOST_TENSORS:
        return None
    forms = [
        None if dims else _known_form(tensor, places)
        for tensor, dims in zip(tensors, lifted, strict=True)
    ]
    others = [number for number, form in enumerate(forms) if form is None]
    first: dict[int, int] = {}
    for number, form in enumerate(forms):
        if form is not None:
            first.setdefault(form.words[KEYS], number)
    asked = (*others, *first.values())
    if len(tensors) - len(asked) < _FEW:
        return None
    alike = _native(places).on(form_data(forms))
    guards = torch_guards([tensors[n] for n in asked], [lifted[n] for n in asked])
    return QuickCheck(alike, asked, len(others), guards.check)


def _known_form(tensor: torch.Tensor, places: TensorWords) -> KnownForm | None:
    """Return the form of a tensor that native code compares."""
    known = type(tensor) in _CLASSES and not tensor.is_nested
    if not known or tensor.dim() > MOST_DIMS or not places.is_simple(tensor):
        return None
    words, masks = words_of(tensor), masks_of(tensor)
    return KnownForm(id(type(tensor)), tensor.requires_grad, words, masks)


@functools.cache
def _native(places: TensorWords) -> NativeFunction:
    module = ir.Module(NAME)
    define_form_check(module, TensorPlaces(WORDS, places.holder, AUTOGRAD, *places[1:]))
    return NativeFunction(NAME, module, TAKES_MANY)


def torch_guards(
    tensors: Sequence[torch.Tensor], lifted: Sequence[frozenset[int]]
) -> TensorGuards:
    """Return guards of torch on tensors.

    Args:
        lifted: Dimensions of each that are not checked; the strides of such a tensor
            are not either.
    """
    sizes: Any = None
    strides: Any = None
    if any(lifted):
        sizes = [
            [None if dim in dims else size for dim, size in enumerate(tensor.shape)]
            for tensor, dims in zip(tensors, lifted, strict=True)
        ]
        strides = [
            [None if dims else stride for stride in tensor.stride()]
            for tensor, dims in zip(tensors, lifted, strict=True)
        ]
    return TensorGuards(
        *tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides
    )
