"""Fifty idioms of everyday Python around tensors: one graph each, and its effects."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import heapq
import itertools
import math
import operator
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import pytest
import torch
from torch import Tensor, nn

from magweld.frontend import trace
from magweld.frontend.differential.check import compare
from magweld.frontend.differential.describe import Walk, generator_states

State = dict[str, Any]
IDIOMS: dict[str, Callable[[Tensor, State], Any]] = {}


def idiom(program: Callable[[Tensor, State], Any]) -> Callable[[Tensor, State], Any]:
    """Take a program into the table."""
    IDIOMS[program.__name__] = program
    return program


class Mode(enum.Enum):
    """What a program is told to do."""

    ADD = "add"
    SCALE = "scale"


class Flags(enum.Flag):
    """What may be combined."""

    A = enum.auto()
    B = enum.auto()


class Point(NamedTuple):
    """A tuple with names."""

    x: float
    y: float = 2.0


@dataclasses.dataclass
class Setting:
    """A record of a program."""

    rate: float
    tags: list[str] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.half = self.rate / 2


class Counted:
    """An object with what Python calls by itself."""

    made = 0

    def __init__(self, values: list[float]) -> None:
        self.values = values
        self._rate = 1.0

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> float:
        return self.values[index]

    def __iter__(self) -> Iterator[float]:
        yield from self.values

    def __contains__(self, value: float) -> bool:
        return any(value == other for other in self.values)

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.rate

    def __add__(self, other: Counted) -> Counted:
        return Counted([*self.values, *other.values])

    def __enter__(self) -> Self:
        self.values.append(1.0)
        return self

    def __exit__(self, *details: object) -> bool:
        self.values.append(2.0)
        return details[0] is KeyError

    @property
    def rate(self) -> float:
        return self._rate

    @rate.setter
    def rate(self, value: float) -> None:
        self._rate = min(value, 4.0)

    @classmethod
    def of(cls, *values: float) -> Counted:
        return cls(list(values))

    @staticmethod
    def twice(value: float) -> float:
        return value * 2


class Longer(Counted):
    """A subclass."""

    def __init__(self, values: list[float], more: float) -> None:
        super().__init__(values)
        self.values.append(more)

    def __len__(self) -> int:
        return super().__len__() + 1


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Note calls in the state that the function gets."""

    @functools.wraps(function)
    def call(x: Tensor, s: State, *args: Any, **kwargs: Any) -> Any:
        s["log"].append(function.__name__)
        return function(x, s, *args, **kwargs)

    return call


@contextlib.contextmanager
def noting(s: State, name: str) -> Iterator[str]:
    """Note the begin and the end of a block."""
    s["log"].append(f"+{name}")
    try:
        yield name
    finally:
        s["log"].append(f"-{name}")


@functools.cache
def factor(number: int) -> float:
    return number * 0.5


@functools.singledispatch
def weight(value: object) -> float:
    return 1.0


@weight.register
def _(value: int) -> float:
    return value * 2.0


@weight.register
def _(value: str) -> float:
    return float(len(value))


def fresh_state() -> State:
    """Return the state of a call."""
    return {
        "numbers": [3, 1, 2],
        "rates": {"a": 0.5, "b": 2.0},
        "names": ["x", "yy", "zzz"],
        "mode": Mode.SCALE,
        "log": [],
        "nested": [1, [2, [3, 4]], []],
        "count": 0,
    }


@idiom
def list_comprehension(x: Tensor, s: State) -> Any:
    return [x * n for n in s["numbers"] if n > 1]


@idiom
def dict_comprehension(x: Tensor, s: State) -> Any:
    return {name: x * rate for name, rate in s["rates"].items()}


@idiom
def set_comprehension(x: Tensor, s: State) -> Any:
    return x * sum(sorted({n % 2 for n in s["numbers"]}))


@idiom
def nested_comprehension(x: Tensor, s: State) -> Any:
    return [[x + i * j for j in range(2)] for i in s["numbers"]]


@idiom
def sum_of_a_generator(x: Tensor, s: State) -> Any:
    return sum(x * n for n in s["numbers"])


@idiom
def enumerate_from(x: Tensor, s: State) -> Any:
    for i, name in enumerate(s["names"], start=1):
        x = x + i * len(name)
    return x


@idiom
def zip_in_step(x: Tensor, s: State) -> Any:
    pairs = zip(s["numbers"], s["names"], strict=True)
    return torch.stack([x * n + len(name) for n, name in pairs])


@idiom
def transpose_by_zip(x: Tensor, s: State) -> Any:
    left, right = zip(*[(n, x * n) for n in s["numbers"]], strict=True)
    return torch.stack(right) * sum(left)


@idiom
def sorted_by_key(x: Tensor, s: State) -> Any:
    order = sorted(s["names"], key=lambda name: -len(name))
    return x * len(order[0]), order, list(reversed(s["numbers"]))


@idiom
def any_and_all(x: Tensor, s: State) -> Any:
    if any(n > 2 for n in s["numbers"]) and all(s["names"]):
        return x * 2
    return x


@idiom
def max_by_key(x: Tensor, s: State) -> Any:
    best = max(s["rates"], key=s["rates"].get)
    return x * s["rates"][best], min([], default=best)


@idiom
def starred_assignment(x: Tensor, s: State) -> Any:
    first, *rest = s["numbers"]
    a, (b, *_) = x, rest
    return a * first + b, len(rest)


@idiom
def arguments_passed_on(x: Tensor, s: State) -> Any:
    def inner(t: Tensor, *args: int, scale: float = 1.0, **rates: float) -> Tensor:
        return t * sum(args) * scale + sum(rates.values())

    return inner(x, *s["numbers"], scale=0.5, **s["rates"])


@idiom
def formatted_text(x: Tensor, s: State) -> Any:
    text = f"{s['numbers'][0]:>3}|{s['rates']['a']:.2f}|{s['mode'].value!r}"
    return x * len(text), text, "%d of %s" % (3, "x")  # noqa: UP031


@idiom
def text_methods(x: Tensor, s: State) -> Any:
    text = ", ".join(s["names"]).upper().replace("Y", "q")
    head, _, tail = text.partition(", ")
    return x * len(text.split(",")), head.startswith("X"), tail.strip("Z")


@idiom
def slices_of_lists(x: Tensor, s: State) -> Any:
    numbers = s["numbers"]
    return x * numbers[-1], numbers[::-1], numbers[1:], numbers[:-1]


@idiom
def assignment_expression(x: Tensor, s: State) -> Any:
    while (n := len(s["log"])) < 3:
        s["log"].append(n)
        x = x + n
    return x


@idiom
def conditions(x: Tensor, s: State) -> Any:
    n = s["numbers"][0]
    scale = 2.0 if 1 < n <= 3 else 3.0
    return x * scale * (s.get("missing") or 0.5) + (not s["log"])


@idiom
def exceptions(x: Tensor, s: State) -> Any:
    try:
        scale = s["rates"]["missing"]
    except KeyError as error:
        scale = float(len(error.args))
    else:
        scale = 5.0
    finally:
        s["count"] += 1
    return x * scale


@idiom
def exception_of_its_own(x: Tensor, s: State) -> Any:
    class TooManyError(ValueError):
        def __init__(self, count: int) -> None:
            super().__init__(f"{count} are too many")
            self.count = count

    try:
        raise TooManyError(len(s["numbers"]))
    except ValueError as error:
        return x * error.count, str(error)


@idiom
def context_manager_function(x: Tensor, s: State) -> Any:
    with noting(s, "a") as a, noting(s, "b"):
        x = x * len(a)
    return x


@idiom
def context_manager_object(x: Tensor, s: State) -> Any:
    with Counted([0.5]) as counted:
        x = x * counted[0]
        raise KeyError("goes no further")
    return x + sum(counted)


@idiom
def suppressed(x: Tensor, s: State) -> Any:
    with contextlib.suppress(ZeroDivisionError):
        s["count"] = 1 // len(s["log"])
    return x


@idiom
def dataclass(x: Tensor, s: State) -> Any:
    setting = Setting(0.5)
    setting.tags.append("t")
    other = dataclasses.replace(setting, rate=3.0)
    return x * other.half, setting, other, setting == other


@idiom
def named_tuple(x: Tensor, s: State) -> Any:
    point = Point(1.5)._replace(y=3.0)
    a, b = point
    return x * a + b, point, point._asdict()


@idiom
def enumerations(x: Tensor, s: State) -> Any:
    if s["mode"] is Mode.ADD:
        return x + 1
    names = [mode.name for mode in Mode]
    flags = Flags.A | Flags.B
    return x * 3, names, Mode("add"), Flags.A in flags


@idiom
def partial_functions(x: Tensor, s: State) -> Any:
    add = functools.partial(torch.add, alpha=2)
    scaled = functools.partial(lambda k, t: t * k, s["numbers"][0])
    return add(x, x), scaled(x)


@idiom
def reduced(x: Tensor, s: State) -> Any:
    return functools.reduce(lambda left, n: left * 2 + n, s["numbers"], x)


@idiom
def cached_function(x: Tensor, s: State) -> Any:
    return x * factor(3) + factor(2)


@idiom
def dispatch_by_type(x: Tensor, s: State) -> Any:
    return x * sum(weight(value) for value in (1, "ab", None))


@idiom
def property_of_an_object(x: Tensor, s: State) -> Any:
    counted = Counted.of(1.0, 2.0)
    counted.rate = 7.0
    counted.rate -= 1.0
    return counted(x), counted.rate, Counted.twice(counted.rate)


@idiom
def inheritance(x: Tensor, s: State) -> Any:
    longer = Longer([1.0], 2.0)
    return x * len(longer), isinstance(longer, Counted), 2.0 in longer


@idiom
def operators_of_an_object(x: Tensor, s: State) -> Any:
    joined = Counted([1.0]) + Counted([2.0, 3.0])
    for value in joined:
        x = x + value
    return x, len(joined), joined[-1]


@idiom
def closure_with_state(x: Tensor, s: State) -> Any:
    count = 0

    def step(t: Tensor) -> Tensor:
        nonlocal count
        count += 1
        return t * count

    return step(step(x)), count


@idiom
def functions_in_a_loop(x: Tensor, s: State) -> Any:
    functions = [lambda t, n=n: t + n for n in s["numbers"]]
    table = {"relu": torch.relu, "tanh": torch.tanh}
    for function in functions:
        x = function(x)
    return table["relu"](x)


@idiom
def generators(x: Tensor, s: State) -> Any:
    def parts(t: Tensor) -> Iterator[Tensor]:
        for n in s["numbers"]:
            s["log"].append(n)
            yield t * n

    def every(t: Tensor) -> Iterator[Tensor]:
        yield t
        yield from parts(t)

    return list(every(x)), next(parts(x))


@idiom
def iterators_by_hand(x: Tensor, s: State) -> Any:
    left = iter(s["numbers"])
    first = next(left)
    rest = list(left)
    return x * first + sum(rest), next(left, None)


@idiom
def itertools_of_all_kinds(x: Tensor, s: State) -> Any:
    chained = list(itertools.chain(s["numbers"], [7]))
    sums = list(itertools.accumulate(chained))
    pairs = list(itertools.product("ab", range(2)))
    taken = list(itertools.islice(itertools.count(5, 2), 3))
    longest = list(itertools.zip_longest(chained, "ab", fillvalue=""))
    return x * sums[-1], pairs, taken, longest, list(itertools.combinations("abc", 2))


@idiom
def grouped_in_a_dict(x: Tensor, s: State) -> Any:
    groups = collections.defaultdict(list)
    for n in s["numbers"]:
        groups[n % 2].append(x * n)
    return {key: torch.stack(items) for key, items in groups.items()}


@idiom
def counted_things(x: Tensor, s: State) -> Any:
    counts = collections.Counter("".join(s["names"]))
    counts.update("xz")
    return x * counts["z"] + counts["none"], counts


@idiom
def queue(x: Tensor, s: State) -> Any:
    last = collections.deque(s["numbers"], maxlen=3)
    last.append(9)
    last.appendleft(8)
    last.rotate(1)
    return x * last[0], last, last.popleft()


@idiom
def heap(x: Tensor, s: State) -> Any:
    items = list(s["numbers"])
    items.sort()
    return x * items[0], items, heapq.nlargest(1, [1]) if not items else items[-1]


@idiom
def dicts_joined(x: Tensor, s: State) -> Any:
    joined = {**s["rates"], "c": 3.0} | {"a": 1.0}
    joined.setdefault("d", 4.0)
    removed = joined.pop("zz", 0.25)
    s["rates"].update(e=5.0)
    return x * sum(joined.values()) + removed, list(joined), dict.fromkeys("pq", 0)


@idiom
def match_statement(x: Tensor, s: State) -> Any:
    match s["nested"]:
        case [int(a), [b, *_], []] if a < b:
            x = x * a + b
        case _:
            x = x * 0
    match s["rates"]:
        case {"a": rate, **rest}:
            return x * rate, rest
    return x


@idiom
def getters(x: Tensor, s: State) -> Any:
    pick = operator.itemgetter("a", "b")
    rate = operator.attrgetter("rate")
    return x * sum(pick(s["rates"])) + rate(Setting(2.0))


@idiom
def attributes_by_name(x: Tensor, s: State) -> Any:
    setting = Setting(2.0)
    setattr(setting, "ex" + "tra", 3.0)
    found = [name for name in ("rate", "extra", "none") if hasattr(setting, name)]
    rate = getattr(setting, found[0])
    return x * rate + getattr(setting, "none", 1.0), found


@idiom
def decorated(x: Tensor, s: State) -> Any:
    @logged
    def scaled(t: Tensor, state: State, *, by: float) -> Tensor:
        return t * by

    return scaled(x, s, by=3.0), scaled.__name__


@idiom
def lists_changed_in_place(x: Tensor, s: State) -> Any:
    numbers = s["numbers"]
    numbers.extend([5, 4])
    numbers.insert(0, 7)
    numbers.sort(reverse=True)
    del numbers[1:3]
    numbers[0], numbers[-1] = numbers[-1], numbers[0]
    return x * numbers[0] + numbers.index(2)


@idiom
def map_and_filter(x: Tensor, s: State) -> Any:
    kept = list(filter(lambda n: n > 1, s["numbers"]))
    return list(map(lambda n: x * n, kept)), sum(map(len, s["names"]))


@idiom
def arithmetic(x: Tensor, s: State) -> Any:
    rows, columns = x.shape
    whole, left = divmod(rows * 7, columns)
    size = math.ceil(math.sqrt(rows)) + (rows << 1) - (-columns // 2)
    return x.reshape(columns, rows) * size + whole, left, round(size / 3, 2), 7 & 3 | 8


@idiom
def copies(x: Tensor, s: State) -> Any:
    shallow, deep = copy.copy(s["nested"]), copy.deepcopy(s["nested"])
    shallow[1].append(6)
    shallow.append(0)
    return x * len(shallow) + len(deep[1]), deep


@idiom
def recursion(x: Tensor, s: State) -> Any:
    def total(item: Any) -> int:
        return sum(map(total, item)) if isinstance(item, list) else item

    def depth(item: Any) -> int:
        if not isinstance(item, list):
            return 0
        return 1 + max([depth(part) for part in item], default=0)

    return x * total(s["nested"]) + depth(s["nested"])


@idiom
def loops_with_ends(x: Tensor, s: State) -> Any:
    for n in s["numbers"]:
        if n == 1:
            continue
        if n > 5:
            break
        x = x + n
    else:
        x = x * 2
    return x


@idiom
def asserted(x: Tensor, s: State) -> Any:
    assert x.dim() == 2, f"expected a matrix, got {x.dim()} dimensions"
    assert isinstance(s["numbers"], list)
    return x.sum(dim=1)


@idiom
def modules_made_and_walked(x: Tensor, s: State) -> Any:
    names = []
    for name, module in NET.named_children():
        names.append(name)
        x = module(x)
    return x, names, sum(p.numel() for p in NET.parameters())


NET = nn.Sequential(
    collections.OrderedDict(first=nn.Linear(3, 4), act=nn.ReLU(), last=nn.Linear(4, 3))
)


def outcome(
    call: Callable[[Tensor, State], Any], number: int
) -> tuple[Any, dict[str, Any]]:
    """Return what a call gives and leaves."""
    random.seed(number)
    torch.manual_seed(number)
    x, state = torch.randn(2, 3), fresh_state()
    with torch.no_grad():
        result = call(x, state)
    return result, {"x": x, "state": state}


@pytest.mark.parametrize("name", IDIOMS)
def test_idiom_is_one_graph(name: str) -> None:
    program = IDIOMS[name]
    fast = trace(program, backend="eager")
    outcome(program, 0)  # Python keeps what it has found, as members for flags
    for number in range(4):
        found, expected = outcome(fast, number), outcome(program, number)
        described = [
            Walk().describe([("result", result), *left.items(), *generator_states()])
            for result, left in (expected, found)
        ]
        assert compare(*described) is None, compare(*described)
    stats = fast.stats()
    counts = [stats[name] for name in ("graphs", "breaks", "misses", "hits")]
    assert counts == [1, 0, 1, 3], fast.explain()


def test_there_are_fifty() -> None:
    assert len(IDIOMS) >= 50
