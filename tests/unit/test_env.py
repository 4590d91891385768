"""Environment variables: read at call time, typed, documented once."""

from __future__ import annotations

from pathlib import Path

import pytest

from magweld import env
from magweld.tools import gen_docs

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("variable", env.VARIABLES, ids=lambda v: v.name)
def test_unset_and_empty_give_the_default(
    variable: env.Variable[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable.name, raising=False)
    unset = variable.get()
    monkeypatch.setenv(variable.name, " ")
    assert variable.get() == unset == variable.default()


def test_a_variable_is_read_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MAGWELD_WORKERS", "3")
    assert env.WORKERS.get() == 3
    monkeypatch.setenv("MAGWELD_WORKERS", "4")
    assert env.WORKERS.get() == 4


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        (env.CACHE, "0", False),
        (env.CACHE, "True", True),
        (env.CACHE_DIR, "/some/where", Path("/some/where")),
        (env.CACHE_MAX_BYTES, "0", 0),
        (env.CPU_CAPABILITY, "avx2", "avx2"),
        (env.DEBUG, "3", 3),
        (env.DUMP_DIR, "~/x", Path.home() / "x"),
        (env.WORKERS, "2", 2),
    ],
)
def test_values(
    variable: env.Variable[object],
    text: str,
    value: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable.name, text)
    assert variable.get() == value


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        (env.CACHE, "yes"),
        (env.CACHE_MAX_BYTES, "-1"),
        (env.CPU_CAPABILITY, "avx512"),
        (env.CACHE_MAX_BYTES, "4G"),
        (env.DEBUG, "4"),
        (env.WORKERS, "0"),
        (env.WORKERS, "many"),
    ],
)
def test_a_bad_value_is_an_error_that_names_the_variable(
    variable: env.Variable[object], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable.name, text)
    with pytest.raises(
        env.EnvironmentVariableError,
        match=rf"{variable.name}: expected .*, got '{text}'",
    ):
        variable.get()


def test_every_variable_is_in_the_table_once() -> None:
    declared = [v for v in vars(env).values() if isinstance(v, env.Variable)]
    assert list(env.VARIABLES) == sorted(declared, key=lambda v: v.name)
    assert len({v.name for v in declared}) == len(declared)


def test_the_reference_of_variables_is_up_to_date() -> None:
    page = (ROOT / "docs" / "env_vars.md").read_text(encoding="utf-8")
    assert page == gen_docs.env_vars_page(), "run `python -m magweld.tools.gen_docs`"
