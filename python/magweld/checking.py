"""Owns `MAGWELD_CHECK`: each call of a compiled graph compared with eager torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from magweld.diagnostics import ResultMismatchError


def run_checked(
    compiled: Callable[[Sequence[Tensor]], Any],
    graph: fx.GraphModule,
    inputs: Sequence[Tensor],
) -> Any:
    """Run compiled code, run the graph on copies, and compare results and inputs.

    Both draw the same random numbers.

    Args:
        compiled: Takes the inputs and returns what the graph returns.
        graph: The captured graph.
        inputs: The inputs of the call.

    Raises:
        ResultMismatchError: They differ by more than rounding.
    """
    copies = copy_tensors(inputs)
    before = torch.get_rng_state()
    result = compiled(inputs)
    after = torch.get_rng_state()
    torch.set_rng_state(before)
    with torch.no_grad():
        expected = graph.forward(*copies)
    torch.set_rng_state(after)
    try:
        torch.testing.assert_close(result, expected, equal_nan=True)
        torch.testing.assert_close(list(inputs), copies, equal_nan=True)
    except AssertionError as error:
        raise ResultMismatchError(
            f"compiled code differs from eager: {error} [result-mismatch]; hint: "
            "report it with the module that records[0].mlir('torch') shows"
        ) from error
    return result


def copy_tensors(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return copies of tensors; those that share memory do so as copies, too."""
    memories: dict[int, torch.UntypedStorage] = {}
    copies = []
    for tensor in tensors:
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        if address not in memories:
            memories[address] = storage.clone()  # type: ignore[no-untyped-call]
        copy = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        offset, shape = tensor.storage_offset(), tensor.shape
        copies.append(copy.set_(memories[address], offset, shape, tensor.stride()))
    return copies
