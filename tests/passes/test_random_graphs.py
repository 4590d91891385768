"""Tiled random graphs compute what the graphs compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_graphs import random_module
from test_tiled_numerics import CHOICES, RAGGED, Lower, steps

# Each size and choice of tiles three times.
USUAL = 24


@pytest.mark.parametrize("seed", range(40))
def test_tiled_is_untiled(
    seed: int, lower: Lower, evaluate: Any, inputs_of_main: Any, whole: bool
) -> None:
    if seed >= USUAL and not whole:
        pytest.skip("a case of `--whole`")
    text = random_module(seed, operations=4 + seed % 8)
    plain = lower(text, [])
    inputs = inputs_of_main(plain)
    expected = evaluate(plain, inputs)
    choices = [*CHOICES, *RAGGED]
    for choice in (None, choices[seed % len(choices)]):
        actual = evaluate(lower(text, steps(choice)), inputs)
        for left, right in zip(actual, expected, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)
