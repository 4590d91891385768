"""Owns what a record writes to, which may lie outside of what a call can reach."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from magweld.frontend.state.mro import ABSENT
from magweld.frontend.state.steps import (
    Call,
    Constant,
    Environment,
    Fetched,
    Mock,
    discard_key,
)
from magweld.frontend.state.values import is_scalar


@dataclass(frozen=True)
class Written:
    """An object that is written.

    Attributes:
        obj: The object.
        key: What is written of a dict; ABSENT where all may be.
    """

    obj: Any
    key: Any = ABSENT


_BY_KEY: Final = (dict.__setitem__, OrderedDict.__setitem__, discard_key)


def written_by(mock: Mock, fetched: list[Any]) -> Iterator[Written]:
    """Yield what a hit writes to beside what it makes.

    A library keeps state in its modules: programs that change it hold no reference.

    Args:
        mock: Effects of the record.
        fetched: What its guard program has returned for them.
    """
    env = Environment(fetched, ())
    for step in mock.steps:
        if isinstance(step, Call) and isinstance(step.target, (Constant, Fetched)):
            obj = step.target.build(env)
            key = step.parts[0] if step.function in _BY_KEY else None
            if isinstance(key, Constant) and is_scalar(key.value):
                yield Written(obj, key.value)
            elif not is_scalar(obj):
                yield Written(obj)


def warned_to() -> Iterator[Written]:
    """Yield what warnings of Python are put into."""
    module: Any = warnings
    yield Written(module.onceregistry)
    taking = getattr(module._showwarnmsg_impl, "__self__", None)
    if type(taking) is list:
        yield Written(taking)
