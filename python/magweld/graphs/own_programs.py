"""Owns how often sizes are used before they have a program beside the one for all."""

from __future__ import annotations

import math
from typing import Final

from magweld.graphs.all_sizes import AllSizes
from magweld.graphs.forms import COMPILE_AFTER, COMPILE_BESIDE, NEVER
from magweld.tiers import TieredGraph

# By which share of the time of the program for all sizes one for some of them may be
# faster: it is made once that share of their calls has taken as long as compiling.
_GAIN: Final = 0.2
# The same where torch runs a part of that program.
_GAIN_OF_PARTS: Final = 0.5


def uses_before_own(sized: TieredGraph, sizes: AllSizes, *, own_pay: bool) -> int:
    """Return how many calls of some sizes a program of their own is worth.

    Args:
        sized: What runs them in the program for all sizes.
        sizes: Has that program.
        own_pay: Whether own programs may pay: the first ones do.
    """
    if not sized.is_decided:
        return NEVER
    if sized.compiled is None:
        # It is of no use; of own programs the first one tells of the others.
        return COMPILE_AFTER if own_pay else COMPILE_BESIDE
    if sized.verdict is None:
        # It may be much slower where torch runs a part of it.
        return COMPILE_BESIDE if sizes.is_whole else COMPILE_AFTER
    gain = _GAIN if sizes.is_whole else _GAIN_OF_PARTS
    seconds = gain * sized.verdict.compiled_seconds
    return max(COMPILE_BESIDE, math.ceil(sizes.program_seconds / max(seconds, 1e-9)))
