"""Owns batch-kernels: independent calls of one kernel become one launch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from magweld.compiler_options import check_batch
from magweld.dialects.tile_graph import OPERATORS, is_kernel
from magweld.passes.analysis.batch_calls import BATCH, BatchCall
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.utils import add_remark, functions_of
from magweld.passes.plan.batch_rules import (
    BatchRule,
    Large,
    MemberCall,
    installed_rules,
)
from magweld.passes.plan.independent_calls import (
    Calls,
    Search,
    bring_together,
    called_by,
    join_calls,
    shown,
)
from magweld.passes.plan.launch_costs import counts_its_tiles, moved_bytes
from magweld.passes.tiling.batched_cost import LARGE_BYTES

_POINTER_BYTES = 8


@dataclass(frozen=True)
class BatchKernels(Pass):
    """Run independent calls of one kernel in one launch.

    Equal subgraphs are calls of one kernel already. Those of which none reads, through
    others, what another one makes become one call of a declaration with
    `magweld.batch`: the grid is that of all members one after another, and each member
    has its own operands and destinations. What a member computes stays as it is.

        %1 = call @kernel_0(%a, %o1)        %1:2 = call @batch_0(%a, %b, %o1, %o2)
        %3 = call @kernel_0(%b, %o2)   =>
                                            @batch_0 {magweld.batch =
                                                {kernel = @kernel_0, members = 2}}

    The members are found by running through the function as far as values allow, and
    waiting with the kernels that have equals: those that wait at one time are
    independent. The kernel of which no more can come goes first, else the one that most
    members wait for. Operators that torch runs keep their order.

    The function gets a remark for each kernel with several calls of which some stay
    apart, with their number, their operators and the rule: `large`, a member moves so
    much that its own tiles keep all cores busy and results would leave the caches;
    `few`, less than `minimum` calls are independent at one time, or left over by
    `maximum`; `deep`, less than that are left within `depth` levels of each other. A
    level is how many calls wait for each other up to a call. Further rules come from
    entry points in `magweld.batch_rules` (`batch_rules.py`), and are named by `rules`.
    A launch on a GPU takes the pointers of all members as its arguments, which
    `launch_bytes` bounds.
    """

    name: ClassVar[str] = "batch-kernels"

    minimum: Annotated[int, "fewest members of a batch"] = 2
    maximum: Annotated[int, "most members of a batch, 0 for no limit"] = 0
    depth: Annotated[int, "most levels between members, 0 for no limit"] = 0
    member_bytes: Annotated[int, "bytes from which a member is on its own"] = (
        LARGE_BYTES
    )
    rules: Annotated[tuple[str, ...], "rules of other packages that keep apart"] = ()
    launch_bytes: Annotated[int, "most bytes of pointers, 0 for no limit"] = 0

    def __post_init__(self) -> None:
        check_batch(self.minimum, self.maximum, self.depth)
        installed_rules(self.rules)

    def run(self, module: Any) -> None:
        """Batch the calls of all functions that are no kernels."""
        functions = {f.name.value: f for f in functions_of(module)}
        for function in list(functions.values()):
            if not function.is_external and not is_kernel(function):
                self._batch(module, function, functions)

    def _batch(self, module: Any, function: Any, functions: Mapping[str, Any]) -> None:
        rules = (Large(self.member_bytes), *installed_rules(self.rules))
        calls = Calls.read(function, functions)
        members = _Members.of(calls, functions, rules)
        kinds = {position: call.kernel for position, call in members.taken.items()}
        most = {kind: self._most_members(functions[kind]) for kind in kinds.values()}
        search = Search(calls, kinds, self.minimum, most, self.depth)
        found = search.run()
        for rule, apart in _refused(members, search):
            add_remark(function, _remark(rule, apart))
        if not found:
            return
        bring_together(function, calls, found)
        for positions in found:
            described = BatchCall(kinds[positions[0]], len(positions))
            ops = [calls.operations[position] for position in positions]
            join_calls(module, ops, "batch", (BATCH, described.attribute()))

    def _most_members(self, kernel: Any) -> int:
        """Return how many members of a kernel a launch may have, 0 for no limit."""
        fitting = self.launch_bytes // (_POINTER_BYTES * len(kernel.type.inputs))
        if not self.launch_bytes:
            return self.maximum
        return max(1, min(fitting, self.maximum or fitting))


@dataclass(frozen=True)
class _Members:
    """The calls that may be members of a batch, as rules see them.

    Attributes:
        taken: Those that no rule refuses, by position.
        refused: The calls that rules keep apart, by rule and kernel.
    """

    taken: dict[int, MemberCall]
    refused: dict[tuple[str, str], list[MemberCall]]

    @classmethod
    def of(
        cls, calls: Calls, functions: Mapping[str, Any], rules: Sequence[BatchRule]
    ) -> _Members:
        """Ask the rules about the calls of a function."""
        members = cls({}, {})
        for position, op in enumerate(calls.operations):
            callee = called_by(op)
            if OPERATORS not in op.attributes or not callee:
                continue
            if not counts_its_tiles(functions[callee]):
                continue
            names = tuple(str(name.value) for name in op.attributes[OPERATORS])
            moved = moved_bytes(op, functions[callee])
            call = MemberCall(callee, names, moved, calls.levels[position])
            rule = next((r.name for r in rules if r.refuses(call)), "")
            if rule:
                members.refused.setdefault((rule, callee), []).append(call)
            else:
                members.taken[position] = call
        return members


def _refused(
    members: _Members, search: Search
) -> Iterator[tuple[str, list[MemberCall]]]:
    """Yield rule and calls of each kernel that has equals of which some stay apart."""
    for (rule, _), refused in members.refused.items():
        if len(refused) > 1:
            yield rule, refused
    batched = {member for found in search.found for member in found}
    total = Counter(call.kernel for call in members.taken.values())
    apart: dict[tuple[str, str], list[MemberCall]] = {}
    for position, call in members.taken.items():
        if total[call.kernel] > 1 and position not in batched:
            rule = "deep" if position in search.deep else "few"
            apart.setdefault((rule, call.kernel), []).append(call)
    for (rule, _), left in apart.items():
        yield rule, left


def _remark(rule: str, apart: Sequence[MemberCall]) -> str:
    names = [name for call in apart for name in call.operators]
    kernel = apart[0].kernel
    return f"{len(apart)} calls of @{kernel} ({shown(names)}) are apart: {rule}"
