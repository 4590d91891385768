"""Owns how often sizes are used before they have a program beside the one for all."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, Final

from magweld.graphs.all_sizes import AllSizes
from magweld.graphs.forms import COMPILE_AFTER, COMPILE_BESIDE, NEVER
from magweld.tiers import TieredGraph, common_verdict

# By which share of the time of the program for all sizes one for some of them may be
# faster: it is made once that share of their calls has taken as long as compiling.
_GAIN: Final = 0.2
# The same where torch runs a part of that program.
_GAIN_OF_PARTS: Final = 0.5
# The share of the time of what runs them instead that it may save at least, where that
# is faster than such a gain promises: some gain more.
_LEAST_GAIN: Final = 0.05


def uses_before_own(sized: TieredGraph, sizes: AllSizes, *, shown: float | None) -> int:
    """Return how many calls of some sizes a program of their own is worth.

    Args:
        sized: What runs them in the program for all sizes.
        sizes: Has that program.
        shown: The share of torch's time that programs for other sizes save, see
            `share_saved`.
    """
    if not sized.is_decided:
        return NEVER
    least = COMPILE_AFTER if shown != 0 else COMPILE_BESIDE
    if sized.verdict is None:
        # Code that has raised is of no use; that which was not timed may be much slower
        # where torch runs a part of it.
        is_good = sized.compiled is not None and sizes.is_whole
        return COMPILE_BESIDE if is_good else least
    ours, torch_seconds = sized.verdict.compiled_seconds, sized.verdict.torch_seconds
    if sized.compiled is not None:
        return max(COMPILE_BESIDE, uses_until_paid(sizes, ours, ours))
    # Of own programs the first one tells of the others.
    told = (shown or 0.0) * torch_seconds
    return max(least, uses_until_paid(sizes, ours, torch_seconds, told))


def uses_until_paid(
    sizes: AllSizes, ours: float, taken: float, told: float = 0.0
) -> int:
    """Return by how many calls a program of their own saves what compiling takes.

    Args:
        sizes: Has the program for all sizes, which took about as long to compile.
        ours: Seconds of a call that it answers.
        taken: Seconds of a call as it is answered without one of their own.
        told: Seconds of these that it saves as far as that is known, 0 if not at all.
    """
    gain = _GAIN if sizes.is_whole else _GAIN_OF_PARTS
    saved = max(gain * ours + (taken - ours), _LEAST_GAIN * taken, told)
    return math.ceil(sizes.program_seconds / max(saved, 1e-9))


def share_saved(forms: Collection[Any]) -> float | None:
    """Return the share of torch's time that programs for some sizes save.

    Args:
        forms: These programs.

    Returns:
        None if there are none, 0 if they do not agree in saving any.
    """
    if not forms:
        return None
    verdict = common_verdict(forms)
    pays = verdict is not None and not verdict.is_for_torch
    return 1 - 1 / verdict.ratio if verdict is not None and pays else 0.0
