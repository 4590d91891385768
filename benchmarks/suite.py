"""Owns the list of what a full run measures, and how each is started."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """One benchmark as it is run.

    Attributes:
        script: File of the benchmark without its suffix.
        arguments: What it is given beside `-o`.
        capability: Instructions that torch and magweld may use.
        label: What tells it from other runs of the script.
        minutes: About how long it takes on two idle cores.
        cases: Option that chooses its cases.
    """

    script: str
    arguments: tuple[str, ...] = ()
    capability: str = "default"
    label: str = ""
    minutes: int = 0
    cases: str = "--cases"

    @property
    def command(self) -> str:
        """How it is started in the folder of benchmarks, beside its environment."""
        return " ".join((f"{self.script}.py", *self.arguments))

    @property
    def name(self) -> str:
        """Name of its report."""
        words = [Path(self.script).name, self.label]
        words += [self.capability] if self.capability != "default" else []
        return "-".join(word for word in words if word)

    def environment(self) -> dict[str, str]:
        """Return the environment of its process."""
        # Torch's own "default" is no vectors at all, not all that there are.
        names = ("MAGWELD_CPU_CAPABILITY", "ATEN_CPU_CAPABILITY")
        limited = self.capability != "default"
        return dict(os.environ) | dict.fromkeys(
            names if limited else (), self.capability
        )


def _subgraphs(
    label: str, minutes: int, *more: str, capability: str = "default"
) -> Run:
    arguments = ("--threads", label[1], *more)
    return Run("subgraphs", arguments, capability, label, minutes)


def _models(label: str, minutes: int, *more: str, capability: str = "default") -> Run:
    arguments = ("--threads", label[1], *more)
    return Run("whole_models", arguments, capability, label, minutes, "--models")


def _figure(script: str, minutes: int, *arguments: str) -> Run:
    return Run(f"paper_figures/{script}", arguments, minutes=minutes)


_PEERS = ("--peers", "eager", "torch.compile", "onnxruntime", "magweld")
_BOUND = ("--models", "resnet50", "unet", *_PEERS, "registers")
_WHOLE = {
    f"{label}-b{batch}": minutes
    for batch, minutes in ((1, 30), (8, 45))
    for label in ("t1", "t2")
}
RUNS = (
    _subgraphs("t1", 12),
    _subgraphs("t2", 12),
    _subgraphs("t1", 12, capability="avx2"),
    _subgraphs("t1-bf16", 15, "--dtype", "bf16"),
    _subgraphs("t1-f16", 15, "--dtype", "f16"),
    *(
        _models(label, minutes, "--batch", label[-1], *_PEERS)
        for label, minutes in _WHOLE.items()
    ),
    _models("t1-b1", 30, *_PEERS, capability="avx2"),
    _models("t1-bf16", 30, "--dtype", "bf16"),
    Run("whole_models", _BOUND, label="compute-bound", minutes=6, cases="--models"),
    Run("everyday", minutes=20),
    Run("inplace", ("--threads", "1"), label="t1", minutes=5),
    Run("loops", minutes=9),
    Run("compile_time", minutes=8),
    Run("memory_budget", minutes=8),
    Run("horizontal", ("--group-batch", "--iree"), minutes=26),
    Run("training", minutes=10),
    Run(
        "coverage",
        ("--every", "8", "--by", "magweld", "torch.compile", "--fresh", "-j", "2"),
        minutes=12,
        cases="--only",
    ),
    _figure("front_ends", 12),
    _figure("graph_counts", 3),
    _figure("breakdown", 8),
    _figure("changing_sizes", 15),
    _figure("rule_training", 6),
    _figure("ablation", 8, "--cases", "nerf", "bsrn", "minilm", "nafnet"),
    _figure("patterns", 10),
    _figure("input_sizes", 15),
    _figure("hand_fused", 3),
    Run("traffic", minutes=20),
    _figure("host_memory", 2),
    _figure("accelerators", 10, "--cases", "nerf", "bsrn", "minilm", "mobilenetv2"),
)
