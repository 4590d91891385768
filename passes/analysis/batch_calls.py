"""Owns the call that runs a kernel for many members, as an attribute of its callee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from magweld.bindings import ir
from magweld.dialects.integers import i64
from magweld.passes.ir.utils import located_error

BATCH = "magweld.batch"


@dataclass(frozen=True)
class BatchCall:
    """A call that runs a kernel several times, in one launch.

    Its operands are those that the kernel takes for each member, one member after
    another, then the destinations of all members. Operands of two members may be one
    tensor. No member reads what another one makes.

    Attributes:
        kernel: Name of the kernel.
        members: How many there are, at least two.
    """

    kernel: str
    members: int

    def attribute(self) -> Any:
        """Return the call as an attribute."""
        return ir.DictAttr.get(
            {
                "kernel": ir.FlatSymbolRefAttr.get(self.kernel),
                "members": i64(self.members),
            }
        )


def batch_of(callee: Any) -> BatchCall | None:
    """Return the batch that a declaration stands for, None if it is none."""
    if BATCH not in callee.attributes:
        return None
    entries = ir.DictAttr(callee.attributes[BATCH])
    return BatchCall(
        ir.FlatSymbolRefAttr(entries["kernel"]).value,
        ir.IntegerAttr(entries["members"]).value,
    )


def verify_batch(callee: Any, batch: BatchCall, kernel: Any) -> None:
    """Make sure that a declaration takes what its kernel takes for each member.

    Raises:
        PassError: It does not, or there are fewer than two members.
    """
    if batch.members < 2:
        raise located_error(callee, f"expected two members, got {batch.members}")
    results = list(kernel.type.results)
    own = list(kernel.type.inputs)[: len(kernel.type.inputs) - len(results)]
    destinations = list(kernel.type.inputs)[len(own) :]
    expected = own * batch.members + destinations * batch.members
    if list(callee.type.inputs) != expected:
        raise located_error(
            callee,
            f"expected what @{batch.kernel} takes, for {batch.members} members",
        )
    if list(callee.type.results) != results * batch.members:
        raise located_error(
            callee,
            f"expected what @{batch.kernel} returns, for {batch.members} members",
        )
