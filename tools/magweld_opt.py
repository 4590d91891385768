"""Owns the entry point of `magweld-opt`, which never imports torch."""

from __future__ import annotations

import sys

from magweld.tools.supervision import run_supervised


def _work() -> int:
    # Imported in the child alone: the parent has to start at once.
    from magweld.tools.driver import OptDriver

    return OptDriver().main(sys.argv[1:])


def main() -> int:
    """Run `magweld-opt` on the process's command line and return its exit code."""
    return run_supervised("magweld-opt", _work)


if __name__ == "__main__":
    sys.exit(main())
