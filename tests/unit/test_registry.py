"""The table of passes, and that each pass is where its name says."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

from magweld.passes.infrastructure.base import Pass
from magweld.passes.infrastructure.options import (
    describe_options,
    format_options,
    parse_options,
)
from magweld.passes.infrastructure.registry import PASSES, PassRegistry
from magweld.tools import gen_docs

ROOT = Path(__file__).parents[2]
FOLD = "magweld.passes.graph.fold_transpose:FoldTranspose"


def test_a_class_is_imported_when_it_is_asked_for() -> None:
    registry = PassRegistry([("absent", "magweld.passes.absent:Absent")])
    assert registry.names() == ("absent",)
    assert "absent" in registry
    assert "other" not in registry
    with pytest.raises(ModuleNotFoundError):
        registry.get("absent")


def test_one_name_for_two_passes_is_an_error() -> None:
    with pytest.raises(ValueError, match="pass 'a' is both m:A and m:B"):
        PassRegistry([("a", "m:A"), ("a", "m:B")])


def test_an_ill_formed_entry_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"'m\.A' is no 'module:Class'"):
        PassRegistry([("a", "m.A")])


def test_the_table_s_name_must_be_the_class_s() -> None:
    with pytest.raises(TypeError, match="is called 'fold-transpose'"):
        PassRegistry([("fold", FOLD)]).get("fold")


def test_the_table_must_name_passes() -> None:
    target = "magweld.passes.infrastructure.registry:PassRegistry"
    with pytest.raises(TypeError, match="is no pass"):
        PassRegistry([("x", target)]).get("x")


def test_an_unknown_name_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        PASSES.get("no-such-pass")


@pytest.mark.parametrize("name", PASSES.names())
class TestEveryPass:
    def test_is_a_documented_frozen_dataclass(self, name: str) -> None:
        found = PASSES.get(name)
        assert issubclass(found, Pass)
        assert found.__dataclass_params__.frozen  # type: ignore[attr-defined]
        assert not inspect.isabstract(found)
        assert found.__doc__ != Pass.__doc__
        assert found.summary().endswith(".")

    def test_has_a_module_and_a_lit_file_of_its_name(self, name: str) -> None:
        module_name = PASSES.target(name).split(":")[0]
        assert module_name.rsplit(".", 1)[1] == name.replace("-", "_")
        module = importlib.import_module(module_name)
        folder = Path(str(module.__file__)).parent.name
        assert (ROOT / "lit_tests" / "passes" / folder / f"{name}.mlir").is_file()

    def test_every_option_has_a_meaning(self, name: str) -> None:
        for option in describe_options(PASSES.get(name)):
            assert option.help, f"'{option.name}' is described nowhere"

    def test_options_of_the_defaults_are_empty(self, name: str) -> None:
        found = PASSES.get(name)
        if all(option.default is not None for option in describe_options(found)):
            assert format_options(parse_options(found, "")) == ""


def test_the_reference_of_passes_is_up_to_date() -> None:
    page = (ROOT / "docs" / "passes.md").read_text(encoding="utf-8")
    assert page == gen_docs.passes_page(), "run `python -m magweld.tools.gen_docs`"
