"""Containers of every standard kind, read, written, returned and rebuilt."""

from __future__ import annotations

import array
import collections
import types

import pytest


def counter(x, s):
    s["a"] += 1
    s.update("ab")
    fresh = collections.Counter(s)
    fresh.subtract(["b"])
    return x * s["a"] + s["absent"], s.most_common(1), s + s, fresh, s.total()


def default_dict(x, s):
    s["new"].append(x)
    s["a"].append(1.0)
    made = collections.defaultdict(int)
    made["k"] += x.shape[0]
    return x * s["a"][0], len(s), s.get("absent"), made


def default_dict_of_lambda(x, s):
    table = collections.defaultdict(lambda: 2.0)
    return x * table["k"] * s["a"][0], len(table)


def chain_map(x, s):
    s["c"] = x
    child = s.new_child({"a": 9.0})
    return x * s["a"], list(s), child["a"], len(s), "b" in s, child


def bounded_deque(x, s):
    count = s.count(1.0)
    s.append(x * 2.0)
    s.appendleft(1.0)
    s.rotate(1)
    made = collections.deque(s, maxlen=2)
    made.extend([1.0])
    return x * len(s), list(s), s.maxlen, count, made


def frozen_set(x, s):
    return x * len(s) + sum(s), s | {9.0}, s & {1.0}, 1.0 in s, s, s <= {1.0, 2.0}


def changed_set(x, s):
    s.add(5.0)
    s.discard(1.0)
    s |= {7.0}
    s ^= {8.0}
    return x * len(s), s.copy(), {1.0, 2.0} - s, s.issubset({1.0}), sorted(s)


def byte_array(x, s):
    made = bytearray(b"abc") + s
    made[0] = 1
    made.extend(b"z")
    made += b"q"
    return x * s[0] + len(s), bytes(s), s[1:], made


def typed_array(x, s):
    made = array.array("d", s)
    made.append(1.0)
    made[0] = 9.0
    return x * s[0] + len(s) + sum(s), s.tolist(), s.typecode, made


def namespace(x, s):
    s.b = x
    s.a += 1.0
    return x * s.a, types.SimpleNamespace(q=x, z=s.a)


def mapping_proxy(x, s):
    merged = {**s}
    return (
        x * s["a"][0],
        len(s),
        list(s),
        s.get("absent"),
        "a" in s,
        dict(s),
        list(s.items()),
        merged,
        types.MappingProxyType({"a": x}),
    )


def user_dict(x, s):
    s["b"] = x
    made = collections.UserList([1.0])
    made += [2.0]
    return x * s["a"], len(s), list(s), s.get("absent"), made


def ordered_dict(x, s):
    s.move_to_end("a")
    s["c"] = x
    first = s.popitem(last=False)
    return x * s["a"][0], first, list(s), list(reversed(s))


def plain_dict(x, s):
    s |= {"z": 1.0}
    s.setdefault("q", []).append(x)
    value = s.pop("a")
    ordered = sorted(s.items(), key=lambda item: item[0])
    return (
        x * value[0],
        dict.fromkeys("ab", 0.0),
        s.keys() & {"b"},
        list(reversed(s)),
        [key for key, _ in ordered],
        s == {"a": 1.0},
        s.copy(),
    )


def moved_key(x, s):
    del s["a"]
    s["c"] = 1.0
    s["a"] = x
    return x * 2.0


def tuples(x, s):
    t = tuple(s["a"])
    return (*t, x), t + t, t * 2, t.index(t[0]), {t: 1}[t], hash(t) == hash(t)


def ranges(x, s):
    n = len(s["a"])
    return range(n), list(range(5, 0, -2)), 3 in range(5), slice(1, None).indices(n), x


CASES = [
    (counter, lambda v: collections.Counter(a=len(v), b=2)),
    (default_dict, lambda v: collections.defaultdict(list, a=v)),
    (default_dict_of_lambda, lambda v: {"a": v}),
    (chain_map, lambda v: collections.ChainMap({"a": v[0]}, {"b": 2.0})),
    (bounded_deque, lambda v: collections.deque(v, maxlen=3)),
    (frozen_set, frozenset),
    (changed_set, set),
    (byte_array, lambda v: bytearray(int(i) for i in v)),
    (typed_array, lambda v: array.array("d", v)),
    (namespace, lambda v: types.SimpleNamespace(a=v[0])),
    (mapping_proxy, lambda v: types.MappingProxyType({"a": v})),
    (user_dict, lambda v: collections.UserDict(a=v[0])),
    (ordered_dict, lambda v: collections.OrderedDict(b=v, a=v)),
    (plain_dict, lambda v: {"a": v, "b": v}),
    (moved_key, lambda v: {"a": v, "b": v}),
    (tuples, lambda v: {"a": v}),
    (ranges, lambda v: {"a": v}),
]


@pytest.mark.parametrize(("program", "make"), CASES, ids=[c[0].__name__ for c in CASES])
def test_container(follow, program, make):
    follow(program, lambda: make([1.0, 2.0]), lambda: make([3.0]))
