"""Owns measured plans: what a file of the plan cache holds, and their exchange."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from magweld.diagnostics import MagweldError
from magweld.runtime.cache import FileCache, Format
from magweld.runtime.container import ContainerError, encode_parts, seal, unseal

PLAN_VERSION = 1
MAX_BYTES = 256 << 20


class PlanFileError(MagweldError):
    """A file of plans that cannot be read."""


@dataclass(frozen=True)
class MeasuredPlan:
    """The plan of a unit that measuring chose.

    Attributes:
        text: The unit with its decisions, as `apply-plans` takes it.
        label: What was decided, for people.
        identity: Digest of compiler, machine and number of threads.
        measured: Least seconds of every plan that was measured, by label; that of the
            model first.
    """

    text: str
    label: str
    identity: str
    measured: Mapping[str, float]


def identity_digest(identity: str) -> str:
    """Return the digest of what plans depend on beside their unit."""
    return hashlib.sha256(identity.encode()).hexdigest()


def plan_key(digest: str, options: str, structure: str) -> str:
    """Return the key of the plan of a unit: 64 hexadecimal digits of SHA-256.

    Args:
        digest: Of the identity.
        options: Canonical text of what the plan may decide.
        structure: The unit.
    """
    parts = [digest.encode(), options.encode(), structure.encode()]
    return hashlib.sha256(encode_parts(parts)).hexdigest()


def plan_cache(directory: Path) -> FileCache[MeasuredPlan]:
    """Return the plans that are kept below the cache directory."""
    return FileCache(directory / f"plans-v{PLAN_VERSION}", MAX_BYTES, _FORMAT)


def export_plans(cache: FileCache[MeasuredPlan], path: Path) -> int:
    """Write all plans into one file; return how many."""
    plans = {key: cache.get(key) for key in cache.keys()}
    parts = [encode_plan(p, k.encode()) for k, p in plans.items() if p is not None]
    path.write_bytes(seal([_EXPORT, *parts]))
    return len(parts)


def import_plans(cache: FileCache[MeasuredPlan], path: Path) -> list[MeasuredPlan]:
    """Add the plans of a file to the cache and return them.

    Raises:
        PlanFileError: The file is not one that `export_plans` wrote.
        OSError: It cannot be read.
    """
    try:
        magic, *parts = unseal(path.read_bytes())
        if magic != _EXPORT:
            raise ContainerError("it holds something else")
        found = dict(map(_labelled, parts))
    except ValueError as error:
        raise PlanFileError(f"{path} is no file of plans: {error}") from error
    for key, plan in found.items():
        cache.put(key, plan)
    return list(found.values())


def encode_plan(plan: MeasuredPlan, key: bytes) -> bytes:
    """Return the bytes of a plan under a key."""
    return seal([key, json.dumps(asdict(plan), sort_keys=False).encode()])


def decode_plan(data: bytes, key: bytes) -> MeasuredPlan:
    """Return the plan of a key.

    Raises:
        ContainerError: Truncated, altered or of another key.
    """
    found, plan = _labelled(data)
    if found.encode() != key:
        raise ContainerError("the content belongs to another key")
    return plan


def _labelled(data: bytes) -> tuple[str, MeasuredPlan]:
    parts = unseal(data)
    if len(parts) != 2:
        raise ContainerError(f"{len(parts)} parts, expected 2")
    try:
        return parts[0].decode("ascii"), MeasuredPlan(**json.loads(parts[1]))
    except (ValueError, TypeError) as error:
        raise ContainerError(f"no plan: {error}") from error


_EXPORT = b"magweld plans %d" % PLAN_VERSION
_FORMAT = Format("plan cache", ".plan", encode_plan, decode_plan)
