"""Pages of the documentation as programs: their code, files, and what code prints.

`python tests/docs/pages.py` writes anew what code prints, after a change to a pass.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import tomllib
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```([^`\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# First line of a block that is a file.
_NAME = re.compile(r"(?:# |/\* )([\w-]+\.(?:py|toml|c))(?: \*/)?\n")
# Printed between the pieces of code of a page.
MARK = "\0"


@dataclass(frozen=True)
class Block:
    """A piece of a page between fences.

    Attributes:
        language: What follows the fence, "" for nothing.
        text: The lines between.
        file: Name of the file that it is, "" for none.
    """

    language: str
    text: str
    file: str


@dataclass(frozen=True)
class Page:
    """A page of the documentation.

    Attributes:
        blocks: What stands between fences, in order.
    """

    blocks: tuple[Block, ...]

    @staticmethod
    def read(path: Path) -> Page:
        """Read a page of Markdown."""
        found = _BLOCK.findall(path.read_text(encoding="utf-8"))
        names = (_NAME.match(text) for _, text in found)
        return Page(
            tuple(
                Block(language, text, name[1] if name else "")
                for (language, text), name in zip(found, names, strict=True)
            )
        )

    @property
    def script(self) -> str:
        """The code of the page as one program that marks where each piece ends."""
        pieces = [b.text for b in self.blocks if b.language == "python" and not b.file]
        return "".join(f"{piece}\nprint({MARK!r}, end='')\n" for piece in pieces)

    def printed(self) -> dict[int, str]:
        """Return what pieces of code print, as the page says, by their number."""
        found, number = {}, -1
        for before, block in zip(("", *self.blocks), self.blocks, strict=False):
            is_code = block.language == "python" and not block.file
            number += is_code
            if block.language == "text" and isinstance(before, Block):
                is_below = before.language == "python" and not before.file
                assert is_below, f"no code stands before {block.text!r}"
                found[number] = block.text
        return found

    def saying(self, printed: list[str], path: Path) -> str:
        """Return the text of the page with what its code prints now.

        Args:
            printed: What each piece of code prints.
            path: The file of the page.
        """
        text, found, start = path.read_text(encoding="utf-8"), "", 0
        for number, said in self.printed().items():
            place = text.index(f"```text\n{said}```", start)
            end = place + len(f"```text\n{said}```")
            found += f"{text[start:place]}```text\n{printed[number]}```"
            start = end
        return found + text[start:]

    def write_files(self, folder: Path) -> None:
        """Write the files of the page into a folder, and install what they describe."""
        for block in self.blocks:
            if block.file:
                (folder / block.file).write_text(block.text, encoding="utf-8")
            if block.file == "pyproject.toml":
                _install(tomllib.loads(block.text)["project"], folder)


def _install(project: dict[str, object], folder: Path) -> None:
    """Write what an installer writes: the metadata and the entry points."""
    name, version = project["name"], project["version"]
    info = folder / f"{str(name).replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (info / "METADATA").write_text(metadata)
    lines = []
    groups = project.get("entry-points", {})
    assert isinstance(groups, dict)
    for group, points in groups.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))


def run(page: Page, name: str, folder: Path) -> None:
    """Run the code of a page in the folder with its files, which is the current one."""
    # In a file: the front end looks up the lines of what it watches.
    script = folder / f"{name}_as_a_program.py"
    script.write_text(page.script, encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")


def main() -> None:
    """Write what code prints into the pages that say so."""
    for path in DOCS.glob("**/*.md"):
        page = Page.read(path)
        if page.printed():
            with TemporaryDirectory() as name, contextlib.chdir(name):
                page.write_files(Path(name))
                output = io.StringIO()
                with contextlib.redirect_stdout(output):
                    run(page, path.stem, Path(name))
            path.write_text(page.saying(output.getvalue().split(MARK), path))


if __name__ == "__main__":
    main()
