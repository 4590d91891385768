"""The match statement: sequences, mappings, classes, values, guards."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class Point:
    """Matched by position and by name."""

    a: float
    b: float = 0.0


class Other:
    """Matched by name, through a property."""

    def __init__(self, value):
        self._value = value

    @property
    def value(self):
        return self._value * 2.0


def match(x, s):
    match s:
        case [a, b]:
            return x * a + b
        case [a]:
            return x * a
        case {"k": v, **rest}:
            return x * v + len(rest)
        case Point(3.0, b=b):
            return x * b
        case Point(a):
            return x + a
        case Other(value=v):
            return x - v
        case _:
            return match_more(x, s)


def match_more(x, s):
    match s:
        case "abc" | "def":
            return x * 7.0
        case (1, *more):
            return x * len(more)
        case None:
            return x * 8.0
        case int(n) if n > 3:
            return x * n
        case {"nested": [p, {"b": q}]}:
            return x * p + q
        case _:
            return x - 1.0


def test_match(follow):
    follow(
        match,
        lambda: [1.0, 2.0],
        lambda: [3.0, 2.0],
        lambda: [3.0],
        lambda: (1, 2, 3, 4),
        lambda: {"k": 2.0, "z": 1},
        lambda: {"k": 2.0},
        lambda: {"nested": [1.0, {"b": 2.0}]},
        lambda: {"nested": [1.0, {"b": 3.0}]},
        lambda: {"nested": [1.0, {"c": 3.0}]},
        dict,
        lambda: Point(3.0, 4.0),
        lambda: Point(3.0, 5.0),
        lambda: Point(4.0),
        lambda: Other(2.0),
        lambda: "abc",
        lambda: None,
        lambda: 5,
        lambda: 2,
    )
