"""Plans on disk: what is kept comes back whole or not at all, and travels."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import pytest

from magweld.runtime.cache import FileCache
from magweld.runtime.plans import (
    MeasuredPlan,
    PlanFileError,
    export_plans,
    identity_digest,
    import_plans,
    plan_cache,
    plan_key,
)

PLAN = MeasuredPlan("text", "tile 4", "identity", {"tile 8": 2.0, "tile 4": 1.0})
KEY = plan_key("digest", "options", "structure")


@pytest.fixture
def cache(tmp_path: Path) -> FileCache[MeasuredPlan]:
    return plan_cache(tmp_path / "cache")


def test_kept_and_found(cache: FileCache[MeasuredPlan], tmp_path: Path) -> None:
    assert cache.get(KEY) is None
    assert cache.keys() == []
    cache.put(KEY, PLAN)
    found = plan_cache(tmp_path / "cache").get(KEY)
    assert found == PLAN
    assert found is not None
    assert list(found.measured) == ["tile 8", "tile 4"]
    assert cache.keys() == [KEY]
    cache.remove(KEY)
    assert cache.get(KEY) is None


def test_keys_tell_everything_apart() -> None:
    keys = {
        plan_key(digest, options, structure)
        for digest in (identity_digest("a"), identity_digest("b"))
        for options in ("o", "p")
        for structure in ("s", "t")
    }
    assert len(keys) == 8


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda data: data[:-3], id="truncated"),
        pytest.param(lambda data: data[:-1] + b"\0", id="altered"),
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: b"no plan at all, but long enough" * 9, id="foreign"),
    ],
)
def test_a_damaged_file_is_told_and_dropped(
    cache: FileCache[MeasuredPlan],
    spoil: object,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache.put(KEY, PLAN)
    path = cache.path(KEY)
    assert callable(spoil)
    path.write_bytes(spoil(path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert cache.get(KEY) is None
    assert str(path) in caplog.text
    assert not path.exists()


def test_a_file_under_another_key_is_not_used(cache: FileCache[MeasuredPlan]) -> None:
    cache.put(KEY, PLAN)
    other = plan_key("digest", "options", "other")
    cache.path(KEY).rename(cache.path(other))
    assert cache.get(other) is None


def test_content_that_is_no_plan(cache: FileCache[MeasuredPlan]) -> None:
    bad = dataclasses.replace(PLAN)
    object.__setattr__(bad, "measured", {1: object})
    with pytest.raises(TypeError):
        cache.put(KEY, bad)
    assert cache.keys() == []


def test_plans_travel(cache: FileCache[MeasuredPlan], tmp_path: Path) -> None:
    second = dataclasses.replace(PLAN, label="tile 8")
    other_key = plan_key("digest", "options", "other")
    cache.put(KEY, PLAN)
    cache.put(other_key, second)
    file = tmp_path / "plans"
    assert export_plans(cache, file) == 2
    there = plan_cache(tmp_path / "there")
    assert {p.label for p in import_plans(there, file)} == {"tile 4", "tile 8"}
    assert (there.get(KEY), there.get(other_key)) == (PLAN, second)


def test_a_bad_export_adds_nothing(
    cache: FileCache[MeasuredPlan], tmp_path: Path
) -> None:
    cache.put(KEY, PLAN)
    file = tmp_path / "plans"
    export_plans(cache, file)
    there = plan_cache(tmp_path / "there")
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(PlanFileError, match="no file of plans"):
        import_plans(there, file)
    file.write_bytes(cache.path(KEY).read_bytes())
    with pytest.raises(PlanFileError, match="something else"):
        import_plans(there, file)
    assert there.keys() == []
