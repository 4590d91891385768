"""Annotations of what TorchDynamo leaves behind in a process that has used it."""

from __future__ import annotations

import sys
from typing import Any, Final

from magweld.frontend.monitor.annotation import Annotation, Entry, Use

DYNAMO_MODULE: Final = "torch._dynamo.mutation_guard"


def dynamo_entries() -> tuple[tuple[Any, Entry], ...]:
    """Return the entries; the module `DYNAMO_MODULE` has been imported.

    Its first compilation patches `nn.Module.__init__`: every new module is noted in a
    weak dictionary that only TorchDynamo reads, so a program that makes modules does
    nothing that anybody else could see.
    """
    tracker = sys.modules[DYNAMO_MODULE].__dict__["GenerationTracker"]
    return ((tracker.__dict__["tag"].__func__, Annotation(rest=Use.KEEP)),)
