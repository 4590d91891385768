"""Owns docs/pipeline.md: one example at every phase, made by the compiler itself."""

from __future__ import annotations

from pathlib import Path

from magweld.bindings import ir
from magweld.context import make_context
from magweld.passes.infrastructure.base import Pass
from magweld.passes.infrastructure.execution import run_pipeline
from magweld.passes.infrastructure.phases import GRAPH_PHASES, PHASES, Phase
from magweld.passes.infrastructure.pipeline import Pipeline, Step
from magweld.passes.pipelines.middle import CpuPipeline, GpuPipeline
from magweld.targets.target import Backend

EXAMPLES = Path("lit_tests", "pipelines", "Inputs")
_EXAMPLE = "linear-norm.mlir"
_DEVICE = "small-cpu.toml#small-cpu"
_GPU = "nvvm:sm_80"
# What a page shows of a phase.
_MOST_LINES = 48
_MOST_COLUMNS = 150

_INTRODUCTION = """\
A program goes through phases; `magweld-opt --list-phases` names them. This page shows
one program at each of them, as the compiler prints it:

```python
def layer(x, w, b, scale, shift):
    return F.layer_norm(torch.relu(x @ w + b), (64,), scale, shift)
```

`{example}` is what tracing makes of it, by `records[0].mlir("torch")`. The CPU phases
are those of

```
magweld-opt --compile-to=PHASE --device={device} \\
    --library=never --vector-bits=256 --vector-registers=16 {example}
```

and the GPU phases those of `magweld-opt --compile-to=PHASE --target={gpu}`. Long lines
and long modules are cut, nothing else is changed. `records[0].mlir(PHASE)` gives the
module of a traced program, up to `tiled` for a GPU and up to `llvm` for a CPU. What
each step does is in [passes.md](passes.md), what the ops mean in
[tile_graph.md](tile_graph.md)."""

_FROM = {
    Phase.TORCH: "",
    Phase.GPU: "From tiled kernels, for a GPU.",
    Phase.BUFFERIZED: "From tiled kernels, for a CPU.",
}


def pipeline_page(root: Path, notice: str) -> str:
    """Return the page as Markdown.

    Args:
        root: The repository, for the example and its device.
        notice: What to put below the title.
    """
    folder = root / EXAMPLES
    text = (folder / _EXAMPLE).read_text(encoding="utf-8")
    cpu = [one for one in PHASES[Backend.CPU] if one is not Phase.OBJECT]
    gpu = [phase for phase in PHASES[Backend.NVVM] if phase not in GRAPH_PHASES]
    parts = [
        "# One program at every phase",
        notice,
        _INTRODUCTION.format(
            example=EXAMPLES / _EXAMPLE, device=EXAMPLES / _DEVICE, gpu=_GPU
        ),
    ]
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        for phase in cpu:
            parts += _section(module, phase, _cpu(folder, phase))
        parts += [
            f"## `{Phase.OBJECT}`",
            f"Then LLVM compiles the module to {Phase.OBJECT.description}.",
        ]
        module = ir.Module.parse(text)
        run_pipeline(_between(GpuPipeline, Phase.TORCH, Phase.TILED), module)
        for last in gpu:
            parts += _section(module, last, _between(GpuPipeline, None, last))
    return "\n\n".join(part for part in parts if part) + "\n"


def _cpu(folder: Path, phase: Phase) -> Pipeline:
    before = _before(phase)
    made = CpuPipeline(
        compile_from=before,
        compile_to=phase,
        device=str(folder / _DEVICE),
        library="never",
        vector_bits=256,
        vector_registers=16,
    )
    return Pipeline(made.steps()[1:])


def _between(kind: type[GpuPipeline], after: Phase | None, until: Phase) -> Pipeline:
    before = after or _before(until)
    steps = kind(target=_GPU, compile_from=before, compile_to=until).steps()
    return Pipeline(steps[1:])


def _before(phase: Phase) -> Phase:
    """Return the phase before one, itself for the first."""
    way = next(way for way in PHASES.values() if phase in way)
    return way[max(0, way.index(phase) - 1)]


def _section(module: ir.Module, phase: Phase, pipeline: Pipeline) -> list[str]:
    """Lower a module by one phase, and return what the page says about it."""
    run_pipeline(pipeline, module)
    steps = ", ".join(f"`{_name(step)}`" for step in pipeline.steps)
    return [
        f"## `{phase}`",
        f"{phase.description[0].upper()}{phase.description[1:]}.",
        f"{_FROM.get(phase, '')} Steps: {steps}.".strip() if steps else "",
        f"```mlir\n{_abridged(str(module))}\n```",
    ]


def _name(step: Step) -> str:
    return step.name if isinstance(step, Pass) else step.text


def _abridged(text: str) -> str:
    lines = text.rstrip().splitlines()
    shown = [_cut(line) for line in lines[:_MOST_LINES]]
    left = len(lines) - len(shown)
    return "\n".join([*shown, f"// {left} more lines"] if left else shown)


def _cut(line: str) -> str:
    return line if len(line) <= _MOST_COLUMNS else f"{line[:_MOST_COLUMNS]} ..."
