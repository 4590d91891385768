"""Owns the records of one traced callable and of the parts behind its breaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from magweld.frontend.catalogue import Break
from magweld.frontend.guards.guard import Failure
from magweld.frontend.lifting.ahead import SizesAhead
from magweld.frontend.records.policy import LiftingPolicy
from magweld.frontend.records.record import Record
from magweld.frontend.records.resting import Resting
from magweld.frontend.segments.continuation import Sources
from magweld.frontend.segments.program import Rest
from magweld.frontend.segments.shape import Form, Suspended
from magweld.frontend.segments.split import Places
from magweld.frontend.segments.steps import BreakStep
from magweld.frontend.state.mro import key_of_class

MAX_RECORDS = 32
# Runs refused for one reason before calls with such arguments are left alone.
MAX_REFUSALS = 2
# Hits for each of a record's failures before what it assumes is taken to change.
MAX_HITS_A_FAILURE: Final = 16
# Records in a row that failed by one guard before it is taken for unstable.
MAX_FAILURES = 8
# Hits in a row of a record that torch runs for many sizes before it is looked at first.
MAX_BEHIND = 16
# Calls in a row that are left alone and that no record answers before the records rest.
MAX_UNANSWERED: Final = 8
# Such calls, in all, in which records go that have never answered one.
_UNWORTHY_AFTER: Final = 64
# Calls that are left alone count as failures under this path.
_LEFT_ALONE: Final = ""

Signature = tuple[Any, ...]


def signature_of(args: Sequence[Any], kwargs: dict[str, Any]) -> Signature:
    """Return the types of the arguments, which tell kinds of calls apart."""
    return (
        tuple(key_of_class(type(value)) for value in args),
        tuple((name, key_of_class(type(value))) for name, value in kwargs.items()),
    )


class RecordCache:
    """Records, the most recently used first.

    Attributes:
        records: Replaced as a whole, so that readers need no lock.
        lifting: Which numbers later runs lift.
        resting: Those that calls do not ask for now: none has answered for long, and
            no record is made for such calls.
        is_resting: Whether it is so, even if there are none.
        rest: For how many calls they do so.
        failures: How often the guard at a path has failed since the last hit.
        added: How many records there have been.
        in_vain: How many recordings in a row have given no record, or one that nobody
            had hit when the next one was made, the last one among them.
        ahead: The sizes of the next run that lifts some, if they are worked out before
            it.
    """

    def __init__(self, lifting: LiftingPolicy) -> None:
        self.records: list[Record] = []
        self.resting: list[Record] = []
        self.is_resting = False
        self.rest = Resting()
        self.added = 0
        self.in_vain = 0
        self._newest: Record | None = None
        self._unanswered = 0
        self._behind = 0
        self.lifting = lifting
        self._refusals: Counter[tuple[Signature, str]] = Counter()
        self.failures: Counter[str] = Counter()
        self.ahead: SizesAhead | None = None
        self._given_up: dict[Signature, str] = {}

    @property
    def is_new(self) -> bool:
        """Whether there has been no record yet."""
        return self.added == 0

    def add(self, record: Record) -> None:
        """Put a new record first; the least recently used one may go.

        One that torch runs for many sizes goes behind those that have code for some.
        """
        self.wake()
        record.number = self.added
        self.added += 1
        self.note_recording(record)
        kept = self.records[: MAX_RECORDS - 1]
        behind = _goes_behind(record, kept)
        self.records = [*kept, record] if behind else [record, *kept]

    def note_recording(self, record: Record | None) -> None:
        """Take note of a recording, which may have given no record."""
        newest, self._newest = self._newest, record
        has_hits = newest is not None and newest.hits > 0
        self.in_vain = 1 if has_hits else self.in_vain + 1

    def promote(self, record: Record) -> None:
        """Put a record first, unless another thread has dropped it meanwhile.

        One that torch runs for many sizes stays behind those that have code for some
        as long as these are hit now and then: each guard that fails takes time.
        """
        self.failures.clear()
        records = self.records
        others = [other for other in records if other is not record]
        if len(others) == len(records):
            return
        self._behind = self._behind + 1 if _goes_behind(record, others) else 0
        if not 0 < self._behind < MAX_BEHIND:
            self.records = [record, *others]

    def drop(self) -> None:
        """Forget every record."""
        self.records = self.resting = []

    def leave_alone(self, signature: Signature) -> int:
        """Take note of a call that no record has answered and none is made for.

        Each record takes time to say that it does not fit: a predicate runs operators,
        an array is compared as a whole. So after some such calls in a row the records
        rest for others.

        Args:
            signature: Types of the arguments.

        Returns:
            For how many calls the records rest from now on; 0 if nothing has changed.
        """
        if self.is_resting:
            self.rest.take_call()
            if self.rest.left <= 0:
                self.wake()
            return 0
        self.failures[_LEFT_ALONE] += 1
        self.rest.note_unanswered()
        self._unanswered += 1
        if self._unanswered % _UNWORTHY_AFTER == 0:
            newest = self._newest
            self.records = [one for one in self.records if one.hits or one is newest]
        if self.failures[_LEFT_ALONE] < MAX_UNANSWERED:
            return 0
        self.is_resting = True
        self.records, self.resting = [], self.records
        return self.rest.begin(signature, sum(one.hits for one in self.resting))

    def rests_for(self, signature: Signature) -> bool:
        """Return whether the records rest for calls with such arguments."""
        return self.is_resting and self.rest.signature == signature

    def wake(self) -> None:
        """Have calls ask for all records again."""
        if not self.is_resting:
            return
        self.is_resting = False
        self.records, self.resting = [*self.records, *self.resting], []
        self.rest.end()
        # It stays, so that the first hit is told to `promote`.
        self.failures[_LEFT_ALONE] = 0

    def note_miss(self, failures: Sequence[tuple[Record, Failure]]) -> None:
        """Take note of the guards that kept each record from answering a call.

        A record that no call has hit, and that sizes alone keep from this one, tells
        that these change from call to call. They are lifted, so the next record is for
        the sizes of this one as well: unless its code is there, it goes.

        Args:
            failures: Each record with the guard that failed.
        """
        unused = [
            (record, failure)
            for record, failure in failures
            if failure.only_sizes and not record.hits and not record.trains
        ]
        changing = {path for _, failure in unused for path in failure.lifts}
        guards = [(record.guards[f.number], f) for record, f in failures]
        self.lifting.note_miss(guards, changing)
        lifted = [r for r, f in unused if self.lifting.wanted.issuperset(f.lifts)]
        gone = [record for record in lifted if record.give_up()]
        self.records = [r for r in self.records if all(r is not one for one in gone)]

    def refuse(self, signature: Signature, refusal: Break) -> None:
        """Count a refused run; after some, such calls are no longer monitored."""
        key = (signature, refusal.id)
        self._refusals[key] += 1
        if self._refusals[key] >= MAX_REFUSALS:
            self._given_up[signature] = refusal.id

    def fail(self, signature: Signature, path: str) -> bool:
        """Count a failed guard; True when it fails on call after call."""
        self.failures[path] += 1
        if self.failures[path] < MAX_FAILURES:
            return False
        self._given_up[signature] = path
        return True

    def has_given_up(self, signature: Signature) -> bool:
        """Return whether calls with such arguments run unmonitored."""
        return signature in self._given_up


def _goes_behind(record: Record, others: Sequence[Record]) -> bool:
    return record.is_for_torch and any(other.is_compiled for other in others)


# Forms of states at which recordings begin, for one traced callable.
MAX_SEGMENTS: Final = 64
# A program is left alone when this many recordings hold few operators each.
_TRIAL: Final = 8
_FEW_OPERATORS: Final = 2


class Segment:
    """A place where recordings begin, with the records that were made there."""

    def __init__(self, form: Form, lifting: LiftingPolicy) -> None:
        self.form = form
        self.cache = RecordCache(lifting)


class Segments:
    """The segments behind the breaks of one traced callable.

    Attributes:
        sources: Makes continuations.
        places: Where recordings are known to end.
        worthless: Whether the recordings hold too few operators.
        assumes: Whether recordings may take truths of tensors for those of all calls.
    """

    def __init__(self, policy: Callable[[], LiftingPolicy]) -> None:
        """Set what gives a segment its own decisions about numbers."""
        self._policy = policy
        self.sources = Sources()
        self.places = Places(self.sources)
        self._forms: dict[tuple[Any, ...], Form] = {}
        self._steps: dict[Form, BreakStep | None] = {}
        self._segments: dict[Form, Segment] = {}
        self._parts = 0
        self._operators = 0
        self.worthless = False
        self.assumes = True

    @property
    def all(self) -> list[Segment]:
        """The segments in the order in which they were met."""
        return list(self._segments.values())

    def at(self, form: Form) -> Segment | None:
        """Return the segment that begins at a form of state, None if too many do."""
        known = self._segments.get(form)
        if known is None:
            form = self.intern(form)
            known = self._segments.get(form)
        if known is None and len(self._segments) < MAX_SEGMENTS:
            known = self._segments.setdefault(form, Segment(form, self._policy()))
        return known

    def intern(self, form: Form) -> Form:
        """Return the one form among equal ones."""
        return self._forms.setdefault(form.key, form)

    def rest(self, suspended: Suspended) -> Rest:
        """Return the rest of a suspended program."""
        return Rest(suspended, self.sources)

    def step(self, suspended: Suspended) -> Suspended | Any:
        """Run the instruction before which a program is suspended, by itself.

        Returns:
            The program behind it, or the result of the program when it has ended.
        """
        form = suspended.form
        known = self._steps.get(form)
        if known is None and form not in self._steps:
            form = self.intern(form)
            known = self._steps[form] = self._step(form)
        if known is None:
            return self.rest(suspended).run()
        return known.run(suspended.values)

    def _step(self, form: Form) -> BreakStep | None:
        try:
            return BreakStep(self.sources, form, self.intern)
        except ValueError:
            return None

    def doubt(self, record: Record) -> bool:
        """Return whether a hit that failed tells that no truth is to be assumed."""
        often = MAX_HITS_A_FAILURE * record.failures > record.hits
        if record.failures >= MAX_REFUSALS and often:
            self.assumes = False
        return not self.assumes

    def tally(self, operators: int) -> bool:
        """Count the operators of a recording that ended at a break.

        Returns:
            Whether the recordings hold so few of them that they are not worth it; they
            are forgotten then.
        """
        self._parts += 1
        self._operators += operators
        few = self._operators < _FEW_OPERATORS * self._parts
        if self._parts >= _TRIAL and few:
            self.worthless = True
            self._segments = {}
        return self.worthless
