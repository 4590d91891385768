"""Annotations of the random generators of the process."""

from __future__ import annotations

import copy
import random
from typing import Any, Final

import numpy as np
import torch

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import Entries, NativeCall, Rule, refused
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.protocols import read_value
from magweld.frontend.state.draws import Draw, Generator, Holding
from magweld.frontend.state.mro import class_dict, find_in_mro

_GENERATOR: Final[Any] = random.random.__self__  # type: ignore[attr-defined]
_ARRAY_GENERATOR: Final[Any] = np.random.mtrand._rand
_GENERATORS: Final = {
    id(_GENERATOR): Generator(_GENERATOR.getstate, _GENERATOR.setstate),
    id(_ARRAY_GENERATOR): Generator(
        _ARRAY_GENERATOR.get_state, _ARRAY_GENERATOR.set_state
    ),
}
# Methods that only draw, from scalars and sequences of them.
_DRAWS: Final = ("random", "getrandbits")
_ARRAY_DRAWS: Final = (
    "beta binomial choice exponential normal permutation poisson rand randint randn"
    " random random_integers random_sample standard_normal uniform"
).split()


def _runs_apart(observer: Observer) -> bool:
    # A branch that is not taken draws nothing; one operator that is Python
    # code draws by itself on every call.
    session = observer.session
    return session.in_branch or session.operators.in_opaque


def _draw(name: str) -> Rule:
    def rule(observer: Observer, call: NativeCall) -> None:
        graph = observer.session.graph
        receiver, *args = call.args
        generator = _GENERATORS.get(id(receiver))
        if generator is None or _runs_apart(observer):
            raise StopRecordingError("random-state", name)
        for argument in (*args, *call.kwargs.values()):
            read_value(observer, argument)
        kept = (tuple(copy.deepcopy(args)), copy.deepcopy(call.kwargs))
        function, where = getattr(receiver, name), graph.locate()

        def note(observer: Observer, stack: list[Any]) -> None:
            graph.adopt(stack[-1])
            value = copy.deepcopy(stack[-1])
            draw = Draw(generator, function, *kept, value, where)
            graph.draws.append(draw)
            if type(value) is float:
                observer.drawn += (Holding(draw, len(stack) - 1),)

        observer.session.opaque_caller = observer
        observer.after = note

    return rule


def _native_methods(cls: type) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (name, value)
        for name, value in class_dict(cls).items()
        if callable(value) and not name.startswith("__")
    )


_NATIVE: Final = random.Random.__mro__[1]
_REFUSED: Final = refused("random-state")
_STATE: Final = ("seed", "getstate", "setstate")

RANDOMNESS: Final[Entries] = (
    *((class_dict(_NATIVE)[name], _draw(name)) for name in _DRAWS),
    (find_in_mro(random.Random, "uniform"), _draw("uniform")),
    *((find_in_mro(random.Random, name), _REFUSED) for name in _STATE),
    *((find_in_mro(_NATIVE, name), _REFUSED) for name in _STATE),
    *(
        (method, _draw(name) if name in _ARRAY_DRAWS else _REFUSED)
        for name, method in _native_methods(np.random.RandomState)
    ),
    *((method, _REFUSED) for _, method in _native_methods(torch._C.Generator)),
    # They look at frames; a generator of the first cannot be made again, so the program
    # is split before there is one.
    *((function, _REFUSED) for function in (torch.random.fork_rng, torch.manual_seed)),
)
