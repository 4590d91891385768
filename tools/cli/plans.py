"""Owns `magweld plans`: plans that measuring chose, shown and exchanged."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from magweld import env
from magweld.columns import columns
from magweld.runtime.cache import FileCache
from magweld.runtime.plans import (
    MeasuredPlan,
    export_plans,
    identity_digest,
    import_plans,
    plan_cache,
)
from magweld.tuning.entry import plan_identity

_HEADINGS = ("plan", "for", "ms", "predicted ms", "plans", "chosen")
_KEY_DIGITS = 12


def run(options: argparse.Namespace) -> None:
    """Do what is asked with the plans of this user."""
    cache = plan_cache(env.CACHE_DIR.get())
    _ACTIONS[options.action](cache, options)


def _list(cache: FileCache[MeasuredPlan], options: argparse.Namespace) -> None:
    found = {key: cache.get(key) for key in cache.keys()}
    rows = [_row(key, plan) for key, plan in found.items() if plan is not None]
    print(columns([_HEADINGS, *rows]) if rows else "no plans")


def _row(key: str, plan: MeasuredPlan) -> tuple[str, ...]:
    model, *_ = plan.measured.values()
    return (
        key[:_KEY_DIGITS],
        "this machine" if plan.identity in _own_identities() else "another",
        f"{plan.measured[plan.label] * 1e3:.3f}",
        f"{model * 1e3:.3f}",
        str(len(plan.measured)),
        plan.label,
    )


def _own_identities() -> Iterator[str]:
    """Of this machine with any number of threads that torch may be given."""
    for threads in range(1, torch.get_num_threads() + 1):
        yield identity_digest(plan_identity(threads))


def _export(cache: FileCache[MeasuredPlan], options: argparse.Namespace) -> None:
    count = export_plans(cache, Path(options.file))
    print(f"{options.file}: {count} plans")


def _import(cache: FileCache[MeasuredPlan], options: argparse.Namespace) -> None:
    plans = import_plans(cache, Path(options.file))
    own = set(_own_identities())
    usable = sum(plan.identity in own for plan in plans)
    print(f"{len(plans)} plans, {usable} of them for this machine and this compiler")


def _clear(cache: FileCache[MeasuredPlan], options: argparse.Namespace) -> None:
    keys = cache.keys()
    for key in keys:
        cache.remove(key)
    print(f"{len(keys)} plans forgotten")


_ACTIONS: dict[str, Callable[[FileCache[MeasuredPlan], argparse.Namespace], None]] = {
    "clear": _clear,
    "export": _export,
    "import": _import,
    "list": _list,
}
