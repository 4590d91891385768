"""Owns the call that runs different kernels side by side, as an attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from magweld.bindings import ir
from magweld.dialects.integers import i64
from magweld.dialects.tile_graph import RUNTIME, is_kernel
from magweld.passes.analysis.batch_calls import batch_of
from magweld.passes.ir.utils import located_error

JOINT = "magweld.joint"


@dataclass(frozen=True)
class JointPart:
    """A kernel, or a batch of one, that runs beside others.

    Attributes:
        callee: Name of the kernel, or of the declaration of the batch.
        share: How much of the work of the launch it is: threads get equal sums of
            shares. Nanoseconds of one core, at least 1.
    """

    callee: str
    share: int


@dataclass(frozen=True)
class JointCall:
    """A call that runs kernels in one launch, whose threads share the tiles of all.

    Its operands are those that its parts take, one part after another, then the
    destinations of all parts. No part reads what another one makes.

    Attributes:
        parts: What it runs, two at least.
    """

    parts: tuple[JointPart, ...]

    def attribute(self) -> Any:
        """Return the call as an attribute."""
        return ir.ArrayAttr.get(
            [
                ir.DictAttr.get(
                    {
                        "callee": ir.FlatSymbolRefAttr.get(part.callee),
                        "share": i64(part.share),
                    }
                )
                for part in self.parts
            ]
        )

    def slices(
        self, functions: Mapping[str, Any]
    ) -> Iterator[tuple[JointPart, slice, slice]]:
        """Yield each part with its places among all operands and among all results."""
        kinds = [functions[part.callee].type for part in self.parts]
        results = [len(kind.results) for kind in kinds]
        owns = [len(kind.inputs) - len(kind.results) for kind in kinds]
        bounds = [
            [slice(begin, end) for begin, end in pairwise(_sums(counts))]
            for counts in (owns, results)
        ]
        yield from zip(self.parts, *bounds, strict=True)


def joint_of(callee: Any) -> JointCall | None:
    """Return what a declaration runs side by side, None if it is no such call."""
    if JOINT not in callee.attributes:
        return None
    entries = [ir.DictAttr(entry) for entry in ir.ArrayAttr(callee.attributes[JOINT])]
    return JointCall(
        tuple(
            JointPart(
                ir.FlatSymbolRefAttr(entry["callee"]).value,
                ir.IntegerAttr(entry["share"]).value,
            )
            for entry in entries
        )
    )


def verify_joint(callee: Any, joint: JointCall, functions: Mapping[str, Any]) -> None:
    """Make sure that a declaration takes what its parts take.

    Raises:
        PassError: It does not, a part is no kernel whose tiles are known, or there are
            fewer than two.
    """
    if len(joint.parts) < 2:
        raise located_error(callee, f"expected two parts, got {len(joint.parts)}")
    for part in joint.parts:
        function = functions.get(part.callee)
        if function is None or not _may_be_part(function):
            raise located_error(
                callee,
                f"expected @{part.callee} to be a kernel of known tiles, or a batch",
            )
        if part.share < 1:
            raise located_error(
                callee, f"expected a share of at least 1, got {part.share}"
            )
    kinds = [functions[part.callee].type for part in joint.parts]
    own, made = [], []
    for kind in kinds:
        count = len(kind.inputs) - len(kind.results)
        own += list(kind.inputs)[:count]
        made += list(kind.inputs)[count:]
    results = [type_ for kind in kinds for type_ in kind.results]
    if [*callee.type.inputs] != own + made or [*callee.type.results] != results:
        raise located_error(callee, "expected what its parts take and return")


def _may_be_part(function: Any) -> bool:
    if batch_of(function) is not None:
        return True
    return is_kernel(function) and RUNTIME not in function.attributes


def _sums(counts: list[int]) -> list[int]:
    """Return where each of some counts begins, and where the last one ends."""
    found = [0]
    for count in counts:
        found.append(found[-1] + count)
    return found
