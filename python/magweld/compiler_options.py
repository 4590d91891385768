"""Owns what a compilation may decide, as a value that travels to the worker."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal


@dataclass(frozen=True)
class CompileOptions:
    """What a compilation may decide.

    Attributes:
        device: A device as `magweld.targets.device` takes it; "cpu" is this machine.
        library: Whether library calls may compute operators.
        fusion: Which operators may share a kernel: all that pay, those that melt into
            their reader element by element, or none.
    """

    device: str = "cpu"
    library: Literal["auto", "never", "always"] = "auto"
    fusion: Literal["all", "registers", "none"] = "all"

    def text(self) -> str:
        """Return the options as canonical text."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def parse(text: str) -> CompileOptions:
        """Read what `text` wrote."""
        return CompileOptions(**json.loads(text))
