"""Owns which arguments of operators decide about values only, never about shapes."""

from __future__ import annotations

from typing import Any, Final

# Operators whose scalar arguments decide about values only: never about shape, type
# or memory of the result, whatever number of the same type they are.
NEUTRAL: Final = frozenset(
    (
        "add sub mul div true_divide divide multiply subtract rsub floor_divide"
        " remainder fmod pow float_power clamp clamp_min clamp_max clip eq ne lt le gt"
        " ge masked_fill fill lerp addcmul addcdiv dropout __rsub__ __rpow__"
        " __floordiv__ __rfloordiv__ __rdiv__ __eq__ __ne__ __rtruediv__ __rmod__"
        " __mod__ add_ sub_"
        " mul_ div_ clamp_ masked_fill_ fill_ lerp_ pow_ leaky_relu elu softplus"
        " maximum minimum where"
    ).split()
)
# Those of them that accept every number with a floating-point tensor.
TOTAL: Final = frozenset(
    (
        "add sub mul div true_divide divide multiply subtract rsub __rsub__ __rdiv__"
        " __rtruediv__ add_ sub_ mul_ div_ eq ne lt le gt ge clamp clamp_min clamp_max"
    ).split()
)
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
