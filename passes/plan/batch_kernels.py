"""Owns batch-kernels: independent calls of one kernel become one launch."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Annotated, Any, ClassVar

from magweld.bindings import func, ir
from magweld.compiler_options import check_batch
from magweld.dialects.tile_graph import (
    EXTERNAL,
    OPERATORS,
    RUNTIME,
    is_kernel,
    reports_of,
    type_bytes,
)
from magweld.passes.analysis.batch_calls import BATCH, BatchCall
from magweld.passes.infrastructure.base import Pass
from magweld.passes.ir.cloning import defining_op
from magweld.passes.ir.utils import (
    add_remark,
    callee_of,
    functions_of,
    unused_name,
)
from magweld.passes.plan.batch_rules import (
    BatchRule,
    Large,
    MemberCall,
    installed_rules,
)

_POINTER_BYTES = 8
# Operators that a remark names.
_SHOWN_OPERATORS = 6


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
    member_bytes: Annotated[int, "bytes from which a member is on its own"] = 512 * 1024
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
        calls = _Calls.read(function, functions, rules)
        most = {
            kernel: self._most_members(functions[kernel])
            for kernel in set(calls.kernels.values())
        }
        search = _Search(calls, self.minimum, most, self.depth)
        found = search.run()
        for rule, apart in _refused(calls, search):
            add_remark(function, _remark(rule, apart))
        if not found:
            return
        _sort(function, calls, found)
        for members in found:
            ops = [calls.operations[member] for member in members]
            _replace(module, functions[calls.kernels[members[0]]], ops)

    def _most_members(self, kernel: Any) -> int:
        """Return how many members of a kernel a launch may have, 0 for no limit."""
        fitting = self.launch_bytes // (_POINTER_BYTES * len(kernel.type.inputs))
        if not self.launch_bytes:
            return self.maximum
        return max(1, min(fitting, self.maximum or fitting))


def _may_be_member(function: Any) -> bool:
    """Whether a function is a kernel whose tiles are counted before a call."""
    return is_kernel(function) and RUNTIME not in function.attributes


@dataclass
class _Calls:
    """The operations of a function in order, and what they wait for.

    Attributes:
        operations: All but the terminator.
        readers: For each the positions of those that have to run behind it.
        waits: How many operations each waits for.
        kernels: Kernel of the calls that may be members of a batch, by position.
        members: The same calls as rules see them.
        refused: The calls that rules keep apart, by rule and kernel.
    """

    operations: list[Any]
    readers: list[list[int]]
    waits: list[int]
    kernels: dict[int, str]
    members: dict[int, MemberCall]
    refused: dict[tuple[str, str], list[MemberCall]]

    @classmethod
    def read(
        cls, function: Any, functions: Mapping[str, Any], rules: Sequence[BatchRule]
    ) -> _Calls:
        """Read the body of a function."""
        *operations, _ = (op.operation for op in function.entry_block.operations)
        positions = {op: position for position, op in enumerate(operations)}
        members: dict[int, MemberCall] = {}
        refused: dict[tuple[str, str], list[MemberCall]] = {}
        levels: list[int] = []
        readers: list[list[int]] = [[] for _ in operations]
        waits = [0] * len(operations)
        external = -1
        for position, op in enumerate(operations):
            makers = {positions[m] for m in _makers(op) if m in positions}
            callee = callee_of(op) if op.name == "func.call" else ""
            if callee and EXTERNAL in functions[callee].attributes:
                # What torch runs may have effects of its own: random numbers.
                makers |= {external} - {-1}
                external = position
            for maker in makers:
                readers[maker].append(position)
            waits[position] = len(makers)
            level = max((levels[maker] for maker in makers), default=0)
            levels.append(level + bool(callee))
            reported = OPERATORS in op.attributes
            if callee and reported and _may_be_member(functions[callee]):
                moved = _moved(op, functions[callee])
                call = MemberCall(callee, _operators(op), moved, levels[-1])
                rule = next((r.name for r in rules if r.refuses(call)), "")
                if rule:
                    refused.setdefault((rule, callee), []).append(call)
                else:
                    members[position] = call
        kernels = {position: call.kernel for position, call in members.items()}
        return cls(operations, readers, waits, kernels, members, refused)


@dataclass
class _Search:
    """Finds sets of independent calls of one kernel.

    Attributes:
        calls: All calls.
        minimum: Fewest members of a set.
        most: Most members by kernel, 0 for no limit.
        depth: Most levels between members, 0 for no limit.
        found: The sets.
        deep: Calls that the depth keeps apart.
    """

    calls: _Calls
    minimum: int
    most: Mapping[str, int]
    depth: int
    found: list[list[int]] = field(init=False, default_factory=list)
    deep: set[int] = field(init=False, default_factory=set)
    _left: Counter[str] = field(init=False)
    _waiting: dict[str, list[int]] = field(init=False, default_factory=dict)
    _free: deque[int] = field(init=False, default_factory=deque)

    def run(self) -> list[list[int]]:
        """Return the sets, their members in order."""
        self._left = Counter(self.calls.kernels.values())
        waits = list(self.calls.waits)
        for position, count in enumerate(waits):
            if not count:
                self._arrive(position)
        while self._free or self._waiting:
            done = [self._free.popleft()] if self._free else self._leave()
            for position in done:
                for reader in self.calls.readers[position]:
                    waits[reader] -= 1
                    if not waits[reader]:
                        self._arrive(reader)
        return self.found

    def _arrive(self, position: int) -> None:
        kernel = self.calls.kernels.get(position)
        if kernel is None or self._left[kernel] < self.minimum:
            self._free.append(position)
        else:
            self._waiting.setdefault(kernel, []).append(position)

    def _leave(self) -> list[int]:
        """Let the calls of one kernel run, as sets if they are enough."""
        kernel = min(self._waiting, key=self._rank)
        members = sorted(self._waiting.pop(kernel))
        self._left[kernel] -= len(members)
        near = self._near(members)
        for one in near:
            if len(near) > 1 and len(one) < self.minimum:
                self.deep.update(one)
            size = self.most[kernel] or len(one)
            sets = [one[i : i + size] for i in range(0, len(one), size)]
            self.found += [s for s in sets if len(s) >= self.minimum]
        return members

    def _near(self, members: list[int]) -> list[list[int]]:
        """Part calls so that the levels of each part are within the depth."""
        if not self.depth:
            return [members]
        level = {m: self.calls.members[m].level for m in members}
        parts: list[list[int]] = []
        for member in sorted(members, key=lambda m: (level[m], m)):
            if parts and level[member] - level[parts[-1][0]] <= self.depth:
                parts[-1].append(member)
            else:
                parts.append([member])
        return [sorted(part) for part in parts]

    def _rank(self, kernel: str) -> tuple[bool, int]:
        here = len(self._waiting[kernel])
        return here < self._left[kernel], -here


def _refused(calls: _Calls, search: _Search) -> Iterator[tuple[str, list[MemberCall]]]:
    """Yield rule and calls of each kernel that has equals of which some stay apart."""
    for (rule, _), refused in calls.refused.items():
        if len(refused) > 1:
            yield rule, refused
    batched = {member for members in search.found for member in members}
    total = Counter(calls.kernels.values())
    apart: dict[tuple[str, str], list[MemberCall]] = {}
    for position, kernel in calls.kernels.items():
        if total[kernel] > 1 and position not in batched:
            rule = "deep" if position in search.deep else "few"
            apart.setdefault((rule, kernel), []).append(calls.members[position])
    for (rule, _), left in apart.items():
        yield rule, left


def _remark(rule: str, apart: Sequence[MemberCall]) -> str:
    names = [name for call in apart for name in call.operators]
    shown = ", ".join(names[:_SHOWN_OPERATORS])
    more = len(names) - _SHOWN_OPERATORS
    rest = f" and {more} more" if more > 0 else ""
    kernel = apart[0].kernel
    return f"{len(apart)} calls of @{kernel} ({shown}{rest}) are apart: {rule}"


def _operators(call: Any) -> tuple[str, ...]:
    return tuple(str(name.value) for name in call.attributes[OPERATORS])


def _sort(function: Any, calls: _Calls, found: Sequence[Sequence[int]]) -> None:
    """Bring the members of each set side by side; the rest moves as little as it can.

    A set has the place of its last member. Of what may run, the first goes first.
    """
    place = list(range(len(calls.operations)))
    for members in found:
        for member in members:
            place[member] = members[-1]
    members_at: dict[int, list[int]] = {}
    for position, at in enumerate(place):
        members_at.setdefault(at, []).append(position)
    waits = {at: sum(calls.waits[m] for m in ms) for at, ms in members_at.items()}
    ready = [at for at, count in waits.items() if not count]
    heapify(ready)
    *_, terminator = function.entry_block.operations
    while ready:
        for position in members_at[heappop(ready)]:
            calls.operations[position].move_before(terminator.operation)
            for reader in calls.readers[position]:
                waits[place[reader]] -= 1
                if not waits[place[reader]]:
                    heappush(ready, place[reader])


def _replace(module: Any, kernel: Any, calls: Sequence[Any]) -> None:
    """Replace calls of a kernel, side by side, by one of a batch."""
    results = len(kernel.type.results)
    own = len(kernel.type.inputs) - results
    operands = [v for call in calls for v in list(call.operands)[:own]]
    operands += [v for call in calls for v in list(call.operands)[own:]]
    types = [value.type for call in calls for value in call.results]
    symbols = ir.SymbolTable(module)
    block = module.regions[0].blocks[0]
    with ir.InsertionPoint(block), kernel.location:
        signature = ([value.type for value in operands], types)
        name = unused_name(symbols, "batch")
        batch = func.FuncOp(name, signature, visibility="private")
    described = BatchCall(kernel.name.value, len(calls))
    batch.attributes[BATCH] = described.attribute()
    with ir.InsertionPoint(calls[-1]), calls[-1].location:
        made = func.CallOp(batch, operands)
    made.attributes[OPERATORS] = ir.ArrayAttr.get(
        [call.attributes[OPERATORS] for call in calls]
    )
    for number, call in enumerate(calls):
        for result, value in enumerate(call.results):
            value.replace_all_uses_with(made.results[number * results + result])
        call.erase()


def _makers(op: Any) -> Iterator[Any]:
    for value in op.operands:
        producer = defining_op(value)
        if producer is not None:
            yield producer.operation


def _moved(call: Any, kernel: Any) -> int:
    """Bytes that a call moves: no more than its tensors have, as it may read parts."""
    operands = dict.fromkeys(call.operands)
    whole = sum(type_bytes(ir.RankedTensorType(value.type)) for value in operands)
    planned = reports_of(kernel).get("traffic_after")
    return whole if planned is None else min(whole, ir.IntegerAttr(planned).value)
