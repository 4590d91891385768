"""Owns the entry point of `magweld-opt`, which never imports torch."""

from __future__ import annotations

import sys

from magweld.tools.supervision import run_supervised


def _work() -> int:
    # Imported in the child alone: the parent has to start at once.
    from magweld.diagnostics import MagweldError
    from magweld.tools.driver import OptDriver
    from magweld.tools.installed_passes import installed_passes

    try:
        registry = installed_passes()
    except MagweldError as error:
        print(f"magweld-opt: error: {error}", file=sys.stderr)
        return 1
    return OptDriver(registry).main(sys.argv[1:])


def main() -> int:
    """Run `magweld-opt` on the process's command line and return its exit code."""
    return run_supervised("magweld-opt", _work)


if __name__ == "__main__":
    sys.exit(main())
