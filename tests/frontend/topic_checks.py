"""Counts of one call of a traced callable: recorded or answered, records, result."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from magweld.frontend.traced import Traced, trace

MISS: Final = "miss"
HIT: Final = "hit"


def traced(function: Callable[..., Any], **options: Any) -> Traced:
    """Trace for counting: graphs run through torch, nothing is lifted by itself."""
    return trace(function, **{"backend": "eager", "dynamic": False, **options})


def agree(left: Any, right: Any) -> bool:
    """Return whether results agree in type, form and value, aliases left aside."""
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and torch.allclose(left, right, equal_nan=True)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(agree, left, right))
    if isinstance(left, (dict, OrderedDict)):
        return list(left) == list(right) and all(agree(left[k], right[k]) for k in left)
    if hasattr(left, "__dict__") and not callable(left):
        return agree(vars(left), vars(right))
    return bool(left == right)


def count_parts(
    target: Traced,
    misses: int,
    hits: int,
    records: int,
    expected: Any,
    *args: Any,
) -> None:
    """Call once; check the result, and how many parts were recorded and answered."""
    before = target.stats()
    result = target(*args)
    after = target.stats()
    assert agree(result, expected), (result, expected, target.explain())
    found = after["misses"] - before["misses"], after["hits"] - before["hits"]
    assert found == (misses, hits), target.explain(recompiles=True)
    assert after["graphs"] - before["graphs"] == misses, target.explain()
    assert after["records"] == records, target.explain()


def run_and_check(
    target: Traced,
    outcomes: Sequence[str],
    records: int,
    expected: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Call once per outcome; check each result, and the records after the last call.

    Args:
        target: The traced callable.
        outcomes: MISS or HIT per call.
        records: Records after the calls.
        expected: What each call must return.
        *args: Arguments.
        **kwargs: Keyword arguments.

    Returns:
        What the last call has returned.
    """
    result = None
    for outcome in outcomes:
        before = target.stats()
        result = target(*args, **kwargs)
        after = target.stats()
        assert agree(result, expected), (result, expected, target.explain())
        found = HIT if after["hits"] > before["hits"] else MISS
        assert found == outcome, target.explain()
        assert after["calls"] == before["calls"] + 1
    assert target.stats()["records"] == records, target.explain()
    assert target.stats()["breaks"] == 0, target.explain()
    return result
