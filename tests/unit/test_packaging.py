"""Packaging: the explicit package list against the folders on disk."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path

import pytest

import magweld

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PROJECT["tool"]["setuptools"]


def packages_on_disk() -> set[str]:
    """Return the packages below the mapped folders, by their import names."""
    found = set()
    for package, folder in SETUPTOOLS["package-dir"].items():
        for init in (ROOT / folder).rglob("__init__.py"):
            inner = init.parent.relative_to(ROOT / folder).parts
            found.add(".".join((package, *inner)))
    return found


def test_every_package_is_listed_and_every_listed_one_exists() -> None:
    listed = SETUPTOOLS["packages"]
    assert len(listed) == len(set(listed))
    assert set(listed) == packages_on_disk()


def test_every_folder_with_modules_is_a_package() -> None:
    folders = [ROOT / folder for folder in SETUPTOOLS["package-dir"].values()]
    with_modules = {p.parent for folder in folders for p in folder.rglob("*.py")}
    assert not [p for p in with_modules if not (p / "__init__.py").is_file()]


def test_data_files_are_declared() -> None:
    declared = SETUPTOOLS["package-data"]
    for package, folder in SETUPTOOLS["package-dir"].items():
        for path in (ROOT / folder).rglob("*"):
            is_source = path.suffix in {".py", ".pyc", ".md"} or path.name == ".gitkeep"
            if path.is_file() and not is_source:
                inner = path.parent.relative_to(ROOT / folder).parts
                patterns = declared.get(".".join((package, *inner)), [])
                assert any(path.match(pattern) for pattern in patterns), path


def test_the_versions_agree() -> None:
    assert PROJECT["project"]["version"] == magweld.__version__


@pytest.mark.parametrize("script", ["magweld", "magweld-opt"])
def test_scripts_name_functions(script: str) -> None:
    module, _, function = PROJECT["project"]["scripts"][script].partition(":")
    assert callable(getattr(importlib.import_module(module), function))
