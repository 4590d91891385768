"""Owns the passes that installed packages bring beside those of magweld."""

from __future__ import annotations

from importlib.metadata import entry_points

from magweld.diagnostics import MagweldError
from magweld.passes.infrastructure.registry import PASSES, PassRegistry

ENTRY_POINT_GROUP = "magweld.passes"


def installed_passes() -> PassRegistry:
    """Return magweld's passes and those of entry points, which are imported.

    Raises:
        MagweldError: What an entry point names is no pass of that name, cannot be
            imported, or has the name of another pass.
    """
    registry = PASSES
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            registry = registry.with_passes([(point.name, point.value)])
            registry.get(point.name)
        except Exception as error:  # whatever a package raises while it is imported
            raise MagweldError(
                f"the entry point '{point.name} = {point.value}' in "
                f"{ENTRY_POINT_GROUP} is no pass: {error}"
            ) from error
    return registry
