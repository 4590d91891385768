"""Tiled random graphs compute what the graphs compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_graphs import random_module
from test_tiled_numerics import CHOICES, RAGGED, Lower, steps


@pytest.mark.sample(9)
@pytest.mark.parametrize("seed", range(40))
def test_tiled_is_untiled(
    seed: int, lower: Lower, evaluate: Any, inputs_of_main: Any
) -> None:
    text = random_module(seed, operations=4 + seed % 8)
    plain = lower(text, [])
    inputs = inputs_of_main(plain)
    expected = evaluate(plain, inputs)
    choices = [*CHOICES, *RAGGED]
    for choice in (None, choices[seed % len(choices)]):
        actual = evaluate(lower(text, steps(choice)), inputs)
        for left, right in zip(actual, expected, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)
