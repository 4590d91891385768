"""Programs for all sizes: which are refused since an extent may be no size."""

from __future__ import annotations

import pytest

from magweld.artifact import KernelStep, Place, Program, StandIns, Value
from magweld.diagnostics import UnsupportedError
from magweld.program_sizes import require_sizes

SIZE = 37
VALUES = (
    Value((5,), "f32", Place.INPUT),
    Value((2 * SIZE, 5), "f32", Place.OUTPUT),
)
PROGRAM = Program(
    VALUES, (KernelStep("rows", (0,), (1,)),), (1,), 0, stand_ins=StandIns((SIZE,))
)


def test_rows_of_a_constant_may_be_as_many_as_the_graph_says() -> None:
    require_sizes(PROGRAM, frozenset({SIZE, 2 * SIZE}))


def test_an_extent_that_the_graph_does_not_have_may_be_no_size() -> None:
    with pytest.raises(UnsupportedError, match="step 0 has a result of an extent"):
        require_sizes(PROGRAM, frozenset({SIZE}))
