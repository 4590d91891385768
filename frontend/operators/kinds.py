"""Owns tables of torch calls: what is no operator, what arguments are values only."""

from __future__ import annotations

import types
from enum import Enum, auto
from typing import Any, Final

import torch
from torch import fx
from torch._ops import HigherOrderOperator

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.rules.natives import native_name

# Operators whose scalar arguments decide about values only: never about shape, type
# or memory of the result, whatever number of the same type they are.
NEUTRAL: Final = frozenset(
    (
        "add sub mul div true_divide divide multiply subtract rsub floor_divide"
        " remainder fmod pow float_power clamp clamp_min clamp_max clip eq ne lt le gt"
        " ge masked_fill fill lerp addcmul addcdiv dropout __rsub__ __rpow__"
        " __floordiv__ __rfloordiv__ __rdiv__ __eq__ __ne__ __rtruediv__ __rmod__"
        " __mod__ add_ sub_"
        " mul_ div_ clamp_ masked_fill_ fill_ lerp_ pow_ addcmul_ addcdiv_"
        " leaky_relu leaky_relu_ elu elu_ softplus"
        " maximum minimum where _foreach_add _foreach_add_ _foreach_sub _foreach_sub_"
        " _foreach_mul _foreach_mul_ _foreach_div _foreach_div_ _foreach_lerp"
        " _foreach_lerp_ _foreach_addcmul_ _foreach_addcdiv_"
    ).split()
)
# Those of them that accept every number as operand beside a floating-point tensor.
TOTAL: Final = frozenset(
    (
        "add sub mul div true_divide divide multiply subtract rsub __rsub__ __rdiv__"
        " __rtruediv__ add_ sub_ mul_ div_ eq ne lt le gt ge __eq__ __ne__ remainder"
        " fmod floor_divide float_power __floordiv__ __rfloordiv__ __mod__ __rmod__"
    ).split()
)
# Where an operand is: a number behind it (`alpha`) is one of the tensor's type.
OPERANDS: Final = (0, 1, "other")
# Others accept every number that the tensor can hold; these, probabilities.
OF_PROBABILITIES: Final = frozenset({"dropout"})
# Those of them that give back an operand itself where a number is zero.
PASSES_AT_ZERO: Final = frozenset({"dropout"})
# Arguments that decide about values only, of operators that also take sizes.
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "__setitem__": (2,),
    "as_tensor": (0, "data"),
    "full": (1, "fill_value"),
    "full_like": (1, "fill_value"),
    "new_full": (2, "fill_value"),
    "new_tensor": (1, "data"),
    "scalar_tensor": (0, "s"),
    "tensor": (0, "data"),
}


def is_value_only(name: str, key: Any) -> bool:
    """Return whether an argument decides about values only.

    Args:
        key: Position of the argument, or its name.
    """
    return name in NEUTRAL or key in VALUES.get(name, ())


class CallKind(Enum):
    """What a call seen by the torch function mode is."""

    # That of the base class is a function of Python and runs at every look-up.
    __hash__ = object.__hash__

    OPERATOR = auto()  # a node of the graph
    METADATA = auto()  # a function of type, shape and layout, which are guarded
    STATE = auto()  # switches a mode of torch, or warns: a node with an effect
    VALUE = auto()  # makes a Python value of the data of a tensor
    ATTRIBUTE = auto()  # an attribute that follows from nothing that is guarded
    FORM = auto()  # changes form or flags of a tensor that the run has made
    MEMORY = auto()  # gives other memory to a tensor of the caller
    WRITE = auto()  # replaces data, gradient or flags of a tensor
    AUTOGRAD = auto()  # reads or runs the autograd graph
    RANDOM = auto()  # touches the state of a generator
    CHECK = auto()  # raises unless a condition holds


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(","))


# Questions about a tensor: their answers follow from its type and flags,
FORMLESS: Final = _names("""
    get dtype, get device, get layout, get requires_grad, get is_cpu, get is_cuda,
    get is_meta, get is_sparse, get is_sparse_csr, get is_quantized, get is_nested,
    get is_mkldnn, get is_mps, get is_xla, get is_xpu, get is_vulkan, get is_ipu,
    get is_maia, get is_mtia, get itemsize, get names, element_size, is_floating_point,
    is_complex, is_signed, is_conj, is_neg, is_tensor, get_device, is_inference,
    _is_zerotensor, has_names, type, promote_types, can_cast
""")
# also from how many dimensions it has,
RANKS: Final = _names("get ndim, dim, ndimension, result_type")
# or from its sizes and strides.
SIZES: Final = _names("""
    get shape, get nbytes, size, numel, nelement, stride, storage_offset, is_contiguous,
    __len__, is_same_size, dense_dim, sparse_dim, dim_order
""")
# The flag of old is always false; asking for it warns.
_STATE: Final = _names("""
    _set_grad_enabled, get volatile, set_autocast_enabled, set_autocast_dtype,
    set_autocast_cache_enabled, autocast_increment_nesting, leave_autocast
""")
_VALUE: Final = _names("""
    item, tolist, numpy, __bool__, __int__, __float__, __index__, __complex__,
    __array__, __contains__, __repr__, __format__, __hash__, data_ptr, equal, allclose,
    is_nonzero, __dlpack__, __reduce_ex__, untyped_storage, storage, _typed_storage
""")
_ATTRIBUTE: Final = _names("""
    get is_leaf, get output_nr, get _version, get name, get _base,
    get _cdata, get _is_view, get is_shared, is_shared, is_pinned, is_set_to
""")
_WRITE: Final = _names("""
    set data, set requires_grad, set grad, set names, set _grad, requires_grad_, set_,
    detach_, resize_, resize_as_, share_memory_, pin_memory, rename_, apply_, map_,
    as_strided_, swap_tensors, t_, transpose_, squeeze_, unsqueeze_, swapaxes_,
    swapdims_
""")
_AUTOGRAD: Final = _names("""
    get grad, get grad_fn, get _grad, get _grad_fn, get _backward_hooks, backward,
    register_hook, retain_grad, get retains_grad, register_post_accumulate_grad_hook,
    grad, set _backward_hooks
""")
_CHECK: Final = _names("_assert")
_RANDOM: Final = _names("manual_seed, seed, set_rng_state, get_rng_state")

_KINDS: Final = {
    name: kind
    for names, kind in (
        (FORMLESS | RANKS | SIZES, CallKind.METADATA),
        (_STATE, CallKind.STATE),
        (_VALUE, CallKind.VALUE),
        (_ATTRIBUTE, CallKind.ATTRIBUTE),
        (_WRITE, CallKind.WRITE),
        (_AUTOGRAD, CallKind.AUTOGRAD),
        (_RANDOM, CallKind.RANDOM),
        (_CHECK, CallKind.CHECK),
    )
    for name in names
}

# What these tell about a tensor that needs no gradient follows from that alone.
_WITHOUT_GRADIENT: Final = frozenset(
    {"get grad_fn", "get is_leaf", "get output_nr", "get retains_grad"}
)
# Of a tensor that the run has made, these are empty until the run fills them.
_OF_NEW_TENSORS: Final = frozenset(
    {"get _backward_hooks", "get _grad", "get grad", "get grad_fn"}
)
# Changes of form that stay within the graph when it has made the tensor.
_FORM_WRITES: Final = _names("""
    set data, set requires_grad, requires_grad_, detach_, resize_, resize_as_, t_,
    transpose_, squeeze_, unsqueeze_, swapaxes_, swapdims_
""")

# They may give another size to the memory as well.
RESIZES: Final = frozenset({"resize_", "resize_as_"})

REFUSALS: Final = {
    CallKind.ATTRIBUTE: "tensor-attribute",
    CallKind.WRITE: "tensor-write",
    CallKind.AUTOGRAD: "autograd-graph",
    CallKind.RANDOM: "random-state",
}


def name_of(func: Any) -> str:
    """Return the name of a torch call; getters and setters as "get x", "set x"."""
    name = getattr(func, "__name__", type(func).__name__)
    if name in ("__get__", "__set__", "__delete__"):
        verb = {"__get__": "get", "__set__": "set", "__delete__": "set"}[name]
        return f"{verb} {getattr(func.__self__, '__name__', '')}"
    return str(name)


def operator_of(node: fx.Node) -> str:
    """Return the name of the torch call that a node of a graph stands for."""
    return node.target if isinstance(node.target, str) else name_of(node.target)


def kind_of(name: str, args: tuple[Any, ...]) -> CallKind:
    """Return what a call is.

    Args:
        name: As `name_of` tells it.
        args: Its arguments; `x.type(dtype)` converts, `x.type()` only asks.
    """
    kind = _KINDS.get(name)
    if kind is None:
        return CallKind.WRITE if name.startswith("set ") else CallKind.OPERATOR
    if name == "type" and len(args) > 1:
        return CallKind.OPERATOR
    return kind


def check_undoable(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a call whose effect cannot be undone.

    Raises:
        StopRecordingError: It is such a call.
    """
    name = name_of(func)
    if kwargs.get("out") is not None:
        raise StopRecordingError("tensor-value", "out= in a branch")
    if any(issubclass(type(arg), torch.Generator) for arg in (*args, *kwargs.values())):
        # Only the generators of the process are put back.
        raise StopRecordingError("random-state", "a generator in a branch")
    refusal = REFUSALS.get(kind_of(name, args))
    if refusal is not None:
        raise StopRecordingError(refusal, name)


def kind_here(
    kind: CallKind, name: str, tensor: Any, result: Any, new: bool
) -> CallKind:
    """Return what a call is, given the tensor that it is about.

    Args:
        kind: What it is in general.
        name: As `name_of` tells it.
        tensor: Its first argument.
        new: Whether the run has made the tensor.
    """
    if name in _WITHOUT_GRADIENT and not tensor.requires_grad:
        return CallKind.METADATA
    if name in _OF_NEW_TENSORS and new and result is None:
        return CallKind.METADATA
    return CallKind.FORM if name in _FORM_WRITES and new else kind


# Where such functions are defined.
_OPERATOR_HOMES: Final = (
    "torch._VariableFunctionsClass.",
    "torch._C._fft.",
    "torch._C._linalg.",
    "torch._C._nested.",
    "torch._C._nn.",
    "torch._C._sparse.",
    "torch._C._special.",
    "torch._C._set_grad_enabled",
    "torch._ops.",
)


def is_of_torch(func: Any, library: str) -> bool:
    """Return whether a call that torch hands to its modes does what torch defines.

    A function of the program may hand itself to them as functions of torch do, and
    operators of higher order (`cond`) run functions of the program.

    Args:
        library: Folder of torch.
    """
    if type(func) is not types.FunctionType:
        return not isinstance(func, HigherOrderOperator)
    # A wrapper of torch's has the name of what it wraps.
    named = type(func.__module__) is str and func.__module__.partition(".")[0]
    return named == "torch" and func.__code__.co_filename.startswith(library)


def acts_through_operators(native: Any) -> bool:
    """Return whether all that a native callable does is seen as operators."""
    owner = getattr(native, "__objclass__", None)
    if owner is not None:
        return issubclass(torch.Tensor, owner) and owner is not object
    if type(native) is not types.BuiltinFunctionType:
        return False
    return native_name(native).startswith(_OPERATOR_HOMES)
