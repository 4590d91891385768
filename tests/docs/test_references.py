"""What pages name is there: commands with their options, files, targets of make."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import DOCS, Page

from magweld.tools.magweld_cli import make_parser
from magweld.tools.opt_options import parse_arguments

ROOT = DOCS.parent
PAGES = [
    *sorted(DOCS.glob("**/*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
]
FOLDERS = (
    *("benchmarks", "dialects", "docs", "examples", "frontend", "lit_tests"),
    *("passes", "python", "tests", "tools"),
)
FILES = [
    f"/{path.relative_to(ROOT)}"
    for folder in ("", *FOLDERS)
    for path in (ROOT / folder).glob("**/*" if folder else "*")
]
NAMED = re.compile(r"`([\w./-]+\.(?:py|md|toml|c|h|mlir|ipynb|json|svg))`")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
COMMENT = re.compile(r"(?:^|\s)#.*")
# A word of this kind in a command or a path stands for one of the reader's.
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")


def commands_of(path: Path) -> Iterator[list[str]]:
    """Yield the commands of a page, each as its words."""
    for block in Page.read(path).blocks:
        if block.language not in ("", "sh"):
            continue
        pending = ""
        for line in block.text.replace("\\\n", " ").splitlines():
            code = COMMENT.sub("", line)
            pending = f"{pending}\n{code}" if pending else code
            try:
                words = shlex.split(pending)
            except ValueError:
                continue  # a quotation goes on in the next line
            pending = ""
            while words and re.match(r"[A-Z_]+=", words[0]):
                del words[0]  # an environment variable
            yield words


def require(words: list[str]) -> None:
    """Check that a command and its options exist.

    Raises:
        SystemExit: `magweld` does not know them.
        MagweldError: `magweld-opt` does not know them.
        AssertionError: There is no such file, or target of make.
    """
    match words:
        case ["magweld", *rest] if rest != ["--version"]:
            make_parser().parse_args(rest)
        case ["magweld-opt", *rest] if not any(map(PLACEHOLDER.search, rest)):
            parse_arguments(rest)
        case ["make", *rest]:
            assert set(rest) <= TARGETS
        case ["python" | "pytest", name, *_] if "/" in name:
            assert (ROOT / name).exists(), name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_commands_and_their_options_exist(path: Path) -> None:
    for words in commands_of(path):
        require(words)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_files_that_are_named_exist(path: Path) -> None:
    for name in NAMED.findall(path.read_text(encoding="utf-8")):
        if "/" not in name and not name.endswith((".py", ".md")):
            continue  # a file that some command writes
        if not PLACEHOLDER.search(name.replace("_", " ").replace("README", "")):
            assert any(file.endswith(f"/{name}") for file in FILES), name


@pytest.mark.parametrize(
    "line",
    [
        "magweld compile model.py:make --inputs 4xf32 --out x.mw",
        "magweld bench model.py:make --inputs 4xf32 --warmup 3",
        "make no-such-target",
        "python benchmarks/no_such_file.py",
    ],
)
def test_what_does_not_exist_is_noticed(line: str) -> None:
    with pytest.raises((SystemExit, AssertionError)) as raised:
        require(shlex.split(line))
    assert getattr(raised.value, "code", 2) == 2
