"""Owns the reference pages that are generated: `python -m magweld.tools.gen_docs`."""

from __future__ import annotations

import argparse
from pathlib import Path

from magweld import env
from magweld.passes.options import OptionInfo, describe_options
from magweld.passes.registry import PASSES, PassRegistry

_NOTICE = "<!-- Written by `python -m magweld.tools.gen_docs`; do not edit. -->"


def passes_page(registry: PassRegistry = PASSES) -> str:
    """Return the reference of all passes as Markdown."""
    parts = ["# Passes", _NOTICE]
    for name in registry.names():
        pass_class = registry.get(name)
        parts += [f"## `{name}`", pass_class.summary(), pass_class.details()]
        options = describe_options(pass_class)
        if options:
            parts.append("\n".join(_option_table(options)))
    return "\n\n".join(part for part in parts if part) + "\n"


def env_vars_page() -> str:
    """Return the reference of all environment variables as Markdown."""
    rows = [
        f"| `{v.name}` | {v.type_name} | {v.default_text} | {v.doc} |"
        for v in env.VARIABLES
    ]
    levels = [f"- {n}: {text}" for n, text in enumerate(env.DEBUG_LEVELS)]
    topics = [f"- `{name}`: {text}" for name, text in env.LOG_TOPICS.items()]
    table = ["| variable | value | default | meaning |", "|---|---|---|---|", *rows]
    return (
        "\n\n".join(
            [
                "# Environment variables",
                _NOTICE,
                "A variable is read at each use; an empty one counts as unset.",
                "\n".join(table),
                f"## Topics of `{env.LOGS.name}`",
                "\n".join(topics),
                f"## Levels of `{env.DEBUG.name}`",
                "Each level shows what the one before it shows, and:",
                "\n".join(levels),
            ]
        )
        + "\n"
    )


def main() -> None:
    """Write the pages into a folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs"))
    folder = parser.parse_args().folder
    pages = {"passes.md": passes_page(), "env_vars.md": env_vars_page()}
    for name, page in pages.items():
        (folder / name).write_text(page, encoding="utf-8")


def _option_table(options: tuple[OptionInfo, ...]) -> list[str]:
    rows = ["| option | value | default | meaning |", "|---|---|---|---|"]
    for option in options:
        default = "must be given" if option.default is None else f"`{option.default}`"
        rows.append(
            f"| `{option.name}` | {option.type_name} | {default} | {option.help} |"
        )
    return rows


if __name__ == "__main__":
    main()
