"""Owns the check that machine code of an artifact may run on this CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from magweld.aot.errors import ArtifactError

if TYPE_CHECKING:
    from magweld.codegen.host import HostTarget


def host_description() -> dict[str, Any]:
    """Return what code that is compiled now relies on, as JSON data."""
    target = _host()
    return {"triple": target.triple, "features": _enabled(target)}


def require_host(description: dict[str, Any]) -> None:
    """Refuse code that this CPU cannot run; it would end the process.

    Raises:
        ArtifactError: `artifact-host`.
    """
    target = _host()
    missing = sorted(set(description["features"]) - set(_enabled(target)))
    if description["triple"] != target.triple or missing:
        needs = f"{description['triple']} {' '.join(missing)}".strip()
        message = f"the artifact needs {needs}, which this CPU is or has not"
        raise ArtifactError("artifact-host", message)


def _host() -> HostTarget:
    # LLVM is asked about the CPU; code for GPUs is loaded without it.
    from magweld.codegen.host import HostTarget

    return HostTarget.detect()


def _enabled(target: HostTarget) -> list[str]:
    words = target.features.split(",")
    return [word[1:] for word in words if word.startswith("+")]
