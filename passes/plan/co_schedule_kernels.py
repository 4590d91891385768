"""Owns co-schedule-kernels: small independent kernels become one launch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.bindings import ir
from magweld.compiler_options import check_batch
from magweld.dialects.tile_graph import OPERATORS, is_kernel
from magweld.passes.analysis.batch_calls import BatchCall, batch_of
from magweld.passes.analysis.joint_calls import JOINT, JointCall, JointPart
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import add_remark, functions_of
from magweld.passes.plan.batch_rules import Large, MemberCall, installed_rules
from magweld.passes.plan.device_launches import BlockLaunching, BlockWork
from magweld.passes.plan.independent_calls import (
    Calls,
    Search,
    bring_together,
    called_by,
    join_calls,
    shown,
)
from magweld.passes.plan.launch_costs import (
    CallWork,
    Launching,
    counts_its_tiles,
    moved_bytes,
)
from magweld.passes.tiling.batched_cost import LARGE_BYTES
from magweld.targets.target import device as named_device

# Calls of one launch: each is a call and a check of bounds in what every thread runs.
_MOST_PARTS = 64
# Parts need not be equal: all calls are of one kind.
_KIND = "kernel"
_NANO = 1e9
_POINTER_BYTES = 8
# What one launch may take of the predicted time of several: kernels that find their
# tensors in caches take less than predicted, and starting threads that sleep takes
# more.
_WORTH = 0.8


@dataclass(frozen=True)
class CoScheduleKernels(Pass):
    """Run small independent kernels side by side, in one launch.

    A kernel that moves little runs on one thread, and one that moves more wakes all
    threads for a few microseconds of work. Calls of which none reads, through others,
    what another one makes become one call of a declaration with `magweld.joint`: its
    tiles are those of all parts, one after another. A part is a kernel or a batch; what
    it computes stays as it is, and it is compiled apart from the others. Threads get
    equal sums of `share`, the nanoseconds that a core is predicted to take for a part.

        %1 = call @kernel_0(%a, %o1)        %1:2 = call @joint_0(%a, %b, %o1, %o2)
        %2 = call @kernel_1(%b, %o2)   =>
                                            @joint_0 {magweld.joint = [
                                                {callee = @kernel_0, share = 9000},
                                                {callee = @kernel_1, share = 12000}]}

    Parts are found as `batch-kernels` finds members, behind which this pass runs,
    within the same bounds and rules: all calls that can run at one time are a set.
    Calls of one kernel are none, as a rule keeps them apart. A set is one launch where
    that is predicted to take four fifths of the time or less. Apart, a kernel with less
    than 64 KiB of tensors takes what one core takes for it, and another one that time
    over all cores and what starting these takes, which the device tells. Together,
    cores are started once and share the work; a kernel with less than 64 KiB of tensors
    counts as one tile. The function gets a remark for each other set, with both times.

    On a GPU each launch takes what the device tells and the kernel's own time, and
    together kernels run side by side where the units have room for all their blocks;
    else one after another. A block takes the shared memory of the kernel with most:
    where not all blocks are there at one time, kernels of which a unit had room for
    different numbers of blocks stay apart. `launch_bytes` bounds the pointers of all
    parts.

    A call that moves `part_bytes` or more stays a launch of its own, as its own tiles
    keep all cores busy, and so does one of which no time is predicted.
    """

    name: ClassVar[str] = "co-schedule-kernels"

    device: Annotated[
        str, '"cpu" for this machine, "my.toml#mine", ...: docs/devices.md.'
    ] = "cpu"
    minimum: Annotated[int, "fewest parts of a launch"] = 2
    maximum: Annotated[int, "most parts of a launch, 0 for 64"] = 0
    depth: Annotated[int, "most levels between parts, 0 for no limit"] = 0
    part_bytes: Annotated[int, "bytes from which a call is on its own"] = LARGE_BYTES
    rules: Annotated[tuple[str, ...], "rules of other packages that keep apart"] = ()
    launch_bytes: Annotated[int, "most bytes of pointers, 0 for no limit"] = 0

    def __post_init__(self) -> None:
        check_batch(self.minimum, self.maximum, self.depth)
        installed_rules(self.rules)

    def run(self, module: Any) -> None:
        """Join calls of all functions that are no kernels."""
        device = named_device(self.device)
        if device.units < 2:
            return
        launching = (
            BlockLaunching(device)
            if device.threads > 1
            else Launching(device.units, device.launch_seconds)
        )
        functions = {f.name.value: f for f in functions_of(module)}
        for function in list(functions.values()):
            if not function.is_external and not is_kernel(function):
                self._join(module, function, functions, launching)

    def _join(
        self,
        module: Any,
        function: Any,
        functions: Mapping[str, Any],
        launching: Any,
    ) -> None:
        calls = Calls.read(function, functions)
        found = self._parts(calls, functions, launching)
        parts = {part.position: part for part in found}
        most = min(self.maximum or _MOST_PARTS, _MOST_PARTS)
        kinds = dict.fromkeys(parts, _KIND)
        search = Search(calls, kinds, self.minimum, {_KIND: most}, self.depth)
        faster: list[list[_Part]] = []
        for one in self._fitting(parts, search.run()):
            works = [part.work for part in one]
            apart, together = launching.apart(works), launching.together(works)
            if together <= _WORTH * apart:
                faster.append(one)
            else:
                add_remark(function, _remark(one, together, apart))
        if faster:
            places = [[part.position for part in one] for one in faster]
            bring_together(function, calls, places)
        for one in faster:
            ops = [calls.operations[part.position] for part in one]
            joint = JointCall(tuple(part.named() for part in one))
            join_calls(module, ops, "joint", (JOINT, joint.attribute()))

    def _fitting(
        self, parts: Mapping[int, _Part], sets: Sequence[Sequence[int]]
    ) -> Iterator[list[_Part]]:
        """Yield sets of different kernels, whose pointers a launch can take."""
        most = self.launch_bytes // _POINTER_BYTES
        for found in sets:
            unlike = _unlike([parts[position] for position in found])
            for one in _within(unlike, most) if most else [unlike]:
                if len(one) >= self.minimum:
                    yield one

    def _parts(
        self, calls: Calls, functions: Mapping[str, Any], launching: Any
    ) -> Iterator[_Part]:
        """Yield the calls that no rule keeps apart from others."""
        rules = (Large(self.part_bytes), *installed_rules(self.rules))
        for position, op in enumerate(calls.operations):
            callee = called_by(op)
            if not callee or OPERATORS not in op.attributes:
                continue
            batch = batch_of(functions[callee]) or BatchCall(callee, 1)
            kernel = functions[batch.kernel]
            if not counts_its_tiles(kernel):
                continue
            work = launching.work(op, kernel, batch.members)
            moved = moved_bytes(op, kernel, batch.members)
            names = tuple(_names(op.attributes[OPERATORS]))
            level = calls.levels[position]
            call = MemberCall(batch.kernel, names, moved, level)
            if work is not None and not any(rule.refuses(call) for rule in rules):
                yield _Part(position, callee, batch.kernel, work)


@dataclass(frozen=True)
class _Part:
    """A call that may run beside others.

    Attributes:
        position: Of the call in its function.
        callee: What it calls: a kernel, or the declaration of a batch.
        kernel: Name of the function that computes.
        work: What it does.
    """

    position: int
    callee: str
    kernel: str
    work: CallWork | BlockWork

    def named(self) -> JointPart:
        """Return the call as a part of a launch."""
        return JointPart(self.callee, max(1, round(self.work.share * _NANO)))


def _unlike(parts: Sequence[_Part]) -> list[_Part]:
    """Return the parts whose kernel no other one has."""
    count = Counter(part.kernel for part in parts)
    return [part for part in parts if count[part.kernel] == 1]


def _within(parts: Sequence[_Part], most: int) -> Iterator[list[_Part]]:
    """Yield parts in their order, as many at a time as have so many pointers."""
    taken: list[_Part] = []
    for part in parts:
        if sum(one.work.pointers for one in (*taken, part)) > most and taken:
            yield taken
            taken = []
        taken.append(part)
    if taken:
        yield taken


def _names(operators: Any) -> Iterator[str]:
    """Yield the names of operators, in lists for the members of a batch."""
    for entry in operators:
        if isinstance(entry, ir.ArrayAttr):
            yield from _names(entry)
        else:
            yield str(entry.value)


def _remark(parts: Sequence[_Part], together: float, apart: float) -> str:
    names = shown([f"@{part.callee}" for part in parts])
    return (
        f"{len(parts)} calls of {names} are apart: no faster "
        f"({together:.1e} s together, {apart:.1e} s apart)"
    )
