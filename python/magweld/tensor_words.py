"""Owns where torch keeps what of a tensor: words of memory, of versions that are known.

Native code tells by these words in 10 ns whether a tensor has the form of another one,
for which torch takes 100. They are no interface, so only of versions that are listed is
known which there are, and it is tried out whether they say what they should.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
_WORD_BYTES: Final = 8
# Versions whose c10/core/TensorImpl.h has these words and no others: that of the class,
# counts, storage, what autograd knows, names and symbolic sizes, version, the object in
# Python, dimensions, sizes, strides, where the tensor begins in its storage, elements,
# a word of type, device and flags, and dispatch keys.
_KNOWN_VERSIONS: Final = ("2.13",)
WORDS: Final = 22
_CLASS, AUTOGRAD, _EXTRA = 0, 3, 4
_DIMS, _SIZES, _STRIDES, _ELEMENTS, _KIND, KEYS = 7, 8, 13, 19, 20, 21
# Sizes and strides of more dimensions are somewhere else.
MOST_DIMS: Final = _STRIDES - _SIZES
_WHOLE: Final = (1 << 64) - 1
# Of the word of type, device and flags: the bits of the type, the first flag, and what
# says nothing of a form. That is whether a user may set sizes, and the last bit, which
# is as the memory was before.
_TYPE_BITS: Final = 16
_CONTIGUOUS: Final = 1 << 40
_MAY_SET: Final = 1 << 48
_FREE_FLAGS: Final = _MAY_SET | 1 << 63
# Bytes of what autograd knows of a tensor (torch/csrc/autograd/variable.h), as far as
# they are looked at.
_META_BYTES: Final = 144


class TensorWords(NamedTuple):
    """Where what is not among the words of a tensor is found.

    Attributes:
        holder: At which byte of a tensor of Python the address of its words is.
        meta_class: First word of what autograd knows of a tensor that is no view.
        wants: At which byte of that it is kept whether a leaf wants gradients.
        function: At which byte of that the function is that has made the tensor.
    """

    holder: int
    meta_class: int
    wants: int
    function: int

    def is_simple(self, tensor: Tensor) -> bool:
        """Whether autograd knows nothing of a tensor, or that of one that is no view.

        A view may want gradients because its base does.
        """
        meta = words_of(tensor)[AUTOGRAD]
        return not meta or _read(meta, 1)[0] == self.meta_class


def words_of(tensor: Tensor) -> tuple[int, ...]:
    """Return all words of a tensor."""
    return _read(tensor._cdata, WORDS)


def masks_of(tensor: Tensor) -> tuple[int, ...]:
    """Return which bits of the words of a tensor tell its form.

    Left out are counts, memory and where the tensor begins in it, its version and its
    object, sizes and strides of dimensions that there are not; and what autograd knows,
    which is asked in another way.

    Args:
        tensor: It has few dimensions, see `MOST_DIMS`.
    """
    masks = [0] * WORDS
    for word in (_CLASS, _EXTRA, _DIMS, _ELEMENTS, KEYS):
        masks[word] = _WHOLE
    for dim in range(tensor.dim()):
        masks[_SIZES + dim] = masks[_STRIDES + dim] = _WHOLE
    masks[_KIND] = _WHOLE & ~_FREE_FLAGS
    return tuple(masks)


def _read(address: int, words: int) -> tuple[int, ...]:
    return tuple((ctypes.c_uint64 * words).from_address(address))


@functools.cache
def tensor_holder() -> int | None:
    """Return at which byte of a tensor of Python C++ holds it; None if unknown."""
    places = set(range(object.__basicsize__, Tensor.__basicsize__, _WORD_BYTES))
    base = torch.zeros(2, 3)
    for tensor in (base, base.t(), torch.nn.Parameter(base), torch.ones(())):
        places = {p for p in places if _read(id(tensor) + p, 1)[0] == tensor._cdata}
    return places.pop() if len(places) == 1 else None


@functools.cache
def tensor_words() -> TensorWords | None:
    """Return where words are; None where that is not known."""
    version = ".".join(torch.__version__.split(".")[:2])
    if version not in _KNOWN_VERSIONS or sys.maxsize < 1 << 32:
        return None
    return without_modes(_find_words)


def _find_words() -> TensorWords | None:
    holder = tensor_holder()
    return _with_autograd(holder) if holder is not None and _tell_forms() else None


def without_modes(find: Callable[[], T]) -> T | None:
    """Return what a function finds where no mode of the caller's is: in a thread.

    A mode would see what is done, and change it. None if there can be no thread.
    """
    found: list[T] = []
    thread = threading.Thread(target=lambda: found.append(find()), name="magweld-words")
    try:
        thread.start()
    except RuntimeError:
        return None
    thread.join()
    return found[0] if found else None


def form_of(tensor: Tensor) -> tuple[int, ...]:
    """Return the bits of the words of a tensor that tell its form."""
    pairs = zip(words_of(tensor), masks_of(tensor), strict=True)
    return tuple(word & mask for word, mask in pairs)


def _tell_forms() -> bool:
    """Whether the words of tensors of one form are equal, and others are not."""
    make = functools.partial(torch.zeros, dtype=torch.float32, device="cpu")
    base = make(2, 3, 5)
    alike = (base.detach(), base.clone(), make(7, 3, 5)[3:5], torch.nn.Parameter(base))
    unlike = (
        base.double(),
        base.to("meta"),
        base.to_sparse(),
        torch._neg_view(base),
        base.to(torch.complex64),
        base.to(torch.complex64).conj(),
        *(base[None], base[:, :, :4], base[:, :, ::2], base[:1].expand(2, 3, 5)),
        *(base.transpose(0, 1), base.transpose(1, 2), make(3, 2, 5)),
    )
    words, form = words_of(base), form_of(base)
    places = ((_DIMS, (3,)), (_SIZES, (2, 3, 5)), (_STRIDES, (15, 5, 1)))
    return (
        all(words[first : first + len(values)] == values for first, values in places)
        and words[_ELEMENTS] == base.numel()
        and _kinds_differ(base, base.double()) >> _TYPE_BITS == 0
        and _kinds_differ(base, base.transpose(0, 1)) == _CONTIGUOUS
        and words[_KIND] & _MAY_SET > 0
        and all(form_of(tensor) == form for tensor in alike)
        and len({form, *map(form_of, unlike)}) == len(unlike) + 1
    )


def _kinds_differ(tensor: Tensor, other: Tensor) -> int:
    """Return the bits in which two tensors differ in type, device and flags."""
    return (words_of(tensor)[_KIND] ^ words_of(other)[_KIND]) & ~_FREE_FLAGS


def _with_autograd(holder: int) -> TensorWords | None:
    """Return where words are, if it is found out what autograd knows of a tensor."""
    leaf = torch.ones(2, dtype=torch.float32, device="cpu", requires_grad=True)
    made = leaf * 2
    meta_class = _read(words_of(leaf)[AUTOGRAD], 1)[0]
    wants = _cleared_by(leaf, lambda: leaf.requires_grad_(False), 1)
    function = _cleared_by(made, made.detach_, _WORD_BYTES)
    if len(wants) != 1 or len(function) != 1:
        return None
    return TensorWords(holder, meta_class, wants[0], function[0])


def _cleared_by(tensor: Tensor, action: Callable[[], object], size: int) -> list[int]:
    """Return at which bytes there is zero after an action, and was not before."""
    meta = words_of(tensor)[AUTOGRAD]
    before = ctypes.string_at(meta, _META_BYTES)
    action()
    after = ctypes.string_at(meta, _META_BYTES)
    return [
        place
        for place in range(0, _META_BYTES, size)
        if any(before[place : place + size]) and not any(after[place : place + size])
    ]
