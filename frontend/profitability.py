"""Owns whether hits pay: whether answering a call takes longer than running it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd import Variable
from torch.utils import _pytree as pytree

from magweld.frontend.operators.history import gradient_node
from magweld.frontend.records.record import Record

# Timed calls of each kind: so many at least, and so many at most.
_FEWEST: Final = 3
_MOST: Final = 5
# Ratio of times that needs no further calls.
_CLEAR: Final = 1.25
# A hit may take longer than eager by this much.
_TOLERATED: Final = 1.05
# Measured calls of a record after which no gradients were asked for, at most.
_UNFINISHED: Final = 32
# Kinds of calls that are remembered.
_KINDS: Final = 256
# Kinds of calls of one record whose hits pay before all are taken to, if none did not.
_PAYING: Final = 8
_VALUES: Final = (bool, int, float, str, type(None))

Kind = tuple[Any, ...]


def kind_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Kind:
    """Return what calls have in common that should take the same time."""
    found: list[Any] = [
        (value.shape, value.dtype)
        if type(value) is torch.Tensor
        else (type(value), value)
        if type(value) in _VALUES
        else type(value)
        for value in args
    ]
    if kwargs:
        found += [(name, kind_of((value,), {})) for name, value in kwargs.items()]
    return tuple(found)


@dataclass
class _Times:
    """Seconds of hits and of eager runs of one kind of calls.

    Attributes:
        sizes: Those of the last hit if a program for all sizes has answered it.
        is_again: Whether they are measured once more, for a program of their own.
    """

    hits: list[float] = field(default_factory=list)
    eager: list[float] = field(default_factory=list)
    sizes: Hashable | None = None
    is_again: bool = False

    @property
    def is_eagers_turn(self) -> bool:
        return len(self.eager) < len(self.hits)

    @property
    def ratio(self) -> float | None:
        """Time of a hit over that of an eager run; None if that is not known yet."""
        count = min(len(self.hits), len(self.eager))
        if count < _FEWEST:
            return None
        ratio = min(self.hits) / max(min(self.eager), 1e-9)
        clear = ratio >= _CLEAR or ratio * _CLEAR <= 1
        return ratio if clear or count >= _MOST else None

    def __str__(self) -> str:
        hit, eager = min(self.hits) * 1e3, min(self.eager) * 1e3
        return f"a hit takes {hit:.3g} ms, eager {eager:.3g} ms"


@dataclass
class _Compared:
    """A record that is being compared.

    Attributes:
        record: The record.
        unfinished: Measured calls since the last whose gradients were asked for.
        paying: Kinds of calls whose hits pay.
        has_lost: Whether those of another kind do not.
    """

    record: Record
    unfinished: int = 0
    paying: set[Kind] = field(default_factory=set)
    has_lost: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether the kinds that are known tell enough of the others."""
        if not self.record.answers_many_sizes:
            return bool(self.paying)
        return len(self.paying) >= (_KINDS if self.has_lost else _PAYING)


class Profitability:
    """Compares hits with eager runs, in turns; what does not pay runs eagerly.

    A record is compared once its graph is compiled, on the kinds of calls that it
    answers often enough. If its hits pay there, they are taken to pay for all calls:
    one kind tells enough of a record for one set of sizes, several of one for many.
    Where a program for all sizes does not pay, one for these sizes is tried first.

    Args:
        compares: Whether anything is compared.
        tell: Gets a line when a kind of calls is to run eagerly.

    Attributes:
        is_open: Whether a call has to ask `runs_eagerly` and `comparison`.
    """

    def __init__(
        self,
        compares: bool,
        tell: Callable[[str], None] = lambda line: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.is_open = False
        self._tell = tell
        self.clock = clock
        self._compares = compares
        self._open: dict[int, _Compared] = {}
        self._times: dict[tuple[int, Kind], _Times] = {}
        self._eager: dict[Kind, _Times] = {}

    def add(self, records: Sequence[Record]) -> None:
        """Have the first of some records compared, unless times would tell nothing.

        Args:
            records: All that there are; others are forgotten.
        """
        kept = {id(record) for record in records}
        self._open = {key: one for key, one in self._open.items() if key in kept}
        new = records[0]
        if self._compares and new.is_timed:
            self._open[id(new)] = _Compared(new)
        self.is_open = bool(self._open or self._eager)

    def runs_eagerly(self, kind: Kind) -> bool:
        """Return whether hits do not pay for a kind of calls."""
        return kind in self._eager

    def comparison(self, record: Record, kind: Kind) -> _Times | None:
        """Return the times of a kind of calls if they are to be measured now."""
        compared = self._open.get(id(record))
        if compared is None or kind in compared.paying or record.is_pending:
            return None
        if torch.are_deterministic_algorithms_enabled():
            return None  # results must not depend on times
        if sys.gettrace() is not None or sys.getprofile() is not None:
            return None  # a debugger or a profiler takes the time
        if len(self._times) >= _KINDS:
            # Hardly any call is like one before: nothing will ever be known.
            self._times.clear()
            self._open.clear()
            self.is_open = bool(self._eager)
        return self._times.setdefault((id(record), kind), _Times())

    def measure(
        self, record: Record, kind: Kind, times: list[float], start: float, result: Any
    ) -> None:
        """Add the time of a call, and of the gradients of what it has returned.

        Args:
            record: The record that has answered the call, or could have.
            kind: Kind of the call.
            times: Where the time is added: hits or eager runs of the kind.
            start: When the call began.
            result: What it has returned.
        """
        seconds, results = self.clock() - start, _differentiable(result)
        if results is None and record.grad_enabled:
            self._dismiss(record)
        elif not results:
            times.append(seconds)
            self._judge(record, kind)
        elif id(record) in self._open:
            compared = self._open[id(record)]
            compared.unfinished += 1
            if compared.unfinished > _UNFINISHED:
                self._dismiss(record)

            def finish(more: float) -> None:
                compared.unfinished = 0
                times.append(seconds + more)
                self._judge(record, kind)

            _time_backward(results, self.clock, finish)

    def _judge(self, record: Record, kind: Kind) -> None:
        """Decide, if the times are enough."""
        times = self._times.get((id(record), kind))
        ratio = None if times is None else times.ratio
        if times is None or ratio is None:
            return
        if ratio > _TOLERATED and times.sizes is not None and not times.is_again:
            record.want_own_sizes(times.sizes)
            self._times[id(record), kind] = _Times(is_again=True)
            return
        self._times.pop((id(record), kind), None)
        compared = self._open.get(id(record))
        if ratio <= _TOLERATED:
            if compared is not None:
                compared.paying.add(kind)
        elif len(self._eager) < _KINDS:
            self._eager[kind] = times
            self._tell(_describe(kind, times))
            self.is_open = True
            if compared is not None:
                compared.has_lost = True
        else:
            self._dismiss(record)
        if compared is not None and compared.is_settled:
            self._dismiss(record)

    def _dismiss(self, record: Record) -> None:
        """Compare a record no more."""
        self._open.pop(id(record), None)
        self._times = {at: t for at, t in self._times.items() if at[0] != id(record)}
        self.is_open = bool(self._open or self._eager)

    def describe(self) -> list[str]:
        """Return a line for each kind of calls that runs eagerly."""
        return [_describe(kind, times) for kind, times in list(self._eager.items())]


def _differentiable(result: Any) -> list[Tensor] | None:
    """Return the tensors of a result that backward can begin at.

    None for a result with parts of other classes, which may hold further ones, and with
    views that autograd tells nothing of.
    """
    leaves = pytree.tree_leaves(result)
    if not all(isinstance(leaf, (Tensor, *_VALUES)) for leaf in leaves):
        return None
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    try:
        return [tensor for tensor in tensors if gradient_node(tensor)]
    except RuntimeError:
        return None


def _time_backward(
    results: Sequence[Tensor], clock: Callable[[], float], tell: Callable[[float], None]
) -> None:
    """Have the first backward through some tensors timed, from them to its end."""
    begun = False

    def begin(gradients: Any) -> None:
        nonlocal begun
        if begun:
            return
        begun = True
        start = clock()
        Variable._execution_engine.queue_callback(lambda: tell(clock() - start))

    for node in {result.grad_fn for result in results}:
        assert node is not None, "they have gradients"
        node.register_prehook(begin)


def _describe(kind: Kind, times: _Times) -> str:
    calls = ", ".join([_text(part) for part in kind])
    return f"calls like ({calls}) run eagerly: {times}"


def _text(kind: Any) -> str:
    if isinstance(kind, type):
        return kind.__name__
    first, second = kind
    if isinstance(first, torch.Size):
        dtype = str(second).removeprefix("torch.")
        return f"{dtype}[{', '.join(map(str, first))}]"
    return repr(second) if isinstance(first, type) else f"{first}={_text(second[0])}"
