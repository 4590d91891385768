"""Classes derived from dict, and what their native `__init__` fills them from."""

from __future__ import annotations

import collections
import functools
import types

import pytest
import torch

from magweld.frontend.traced import trace


class Config(dict):
    """A dict of another class."""


class Made(dict):
    def __new__(cls, *args):
        return super().__new__(cls)


class Ordered(collections.OrderedDict):
    """An ordered dict of another class."""


class Pairs:
    def __init__(self, content):
        self.content = content

    def __iter__(self):
        return iter(self.content.items())


class Keyed:
    def __init__(self, content):
        self.content = content

    def keys(self):
        return self.content.keys()

    def __getitem__(self, key):
        return self.content[key]


def _updated(content):
    made = {}
    made.update(types.MappingProxyType(content))
    return made


PROGRAMS = {
    "dict": Config,
    "keywords": lambda c: Config({"z": 1}, **c),
    "pairs": lambda c: Config(zip("ab", c.values(), strict=True)),
    "items": lambda c: Config(c.items()),
    "list": lambda c: Config([("a", c["a"])]),
    "generator": lambda c: Config((key, c[key]) for key in c),
    "method": lambda c: Config(Pairs(c)),
    "keys": lambda c: Config(Keyed(c)),
    "partial": lambda c: functools.partial(Config, c)(),
    "nested": lambda c: dict(Config(Config(c)).items()),
    "written": lambda c: Config(c | {"b": c["a"]}),
    "new": Made,
    "ordered": Ordered,
    "proxy": lambda c: Config(types.MappingProxyType(c)),
    "dict of proxy": lambda c: dict(types.MappingProxyType(c)),
    "ordered of proxy": lambda c: collections.OrderedDict(types.MappingProxyType(c)),
    "updated with proxy": _updated,
}


@pytest.mark.parametrize("make", PROGRAMS.values(), ids=PROGRAMS)
def test_dict_has_the_content_of_the_call(make):
    fast = trace(lambda x, c: (x * 2, make(c)), backend="eager")
    x = torch.ones(2)
    for k in (7, 8, 3, 5, 3, True, 1.0):
        content = {"a": k, "b": 3}
        _, made = fast(x, content)
        expected = make(content)
        assert type(made) is type(expected)
        assert repr(made) == repr(expected), fast.explain()
    assert fast.stats()["hits"] > 0, fast.explain()
