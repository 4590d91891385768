"""Owns what the papers state of their measurements, beside what our reports say.

MagPy is C. Zhang et al., MAGPY: Compiling Eager Mode DNN Programs by Monitoring
Execution States, USENIX ATC 2024. Welder is Y. Shi et al., Welder: Scheduling Deep
Learning Memory Access via Tile-graph, OSDI 2023. Rules is the PyTorch blog's post on
model transformations by atomic rules in torch.compile. Figures are those that the
authors state in words: bars of plots are not read off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reports import OURS, Report, Row, geometric_mean

MAGPY = "MagPy (USENIX ATC 2024)"
WELDER = "Welder (OSDI 2023)"
RULES = "Rules (PyTorch blog)"


@dataclass(frozen=True)
class Quantity:
    """One figure of a paper.

    Attributes:
        text: What it is.
        paper: What the paper states.
        ours: Reads the same of a report; None where that was not measured.
    """

    text: str
    paper: str
    ours: Callable[[Report], str | None]


@dataclass(frozen=True)
class Claim:
    """A figure or table of a paper that a report stands beside.

    Attributes:
        source: The paper.
        place: Figure or table of it.
        quantities: What it states.
        differs: What is different here, in sentences.
    """

    source: str
    place: str
    quantities: tuple[Quantity, ...]
    differs: str


def _times(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.2f} x"


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:.1%}"


def mean_over(peer: str) -> Callable[[Report], str | None]:
    """Read how many times as fast as a peer ours is, by the geometric mean."""
    return lambda report: _times(report.mean_speed(peer))


def most_over(peer: str) -> Callable[[Report], str | None]:
    """Read how many times as fast as a peer ours is where that is most."""
    return lambda report: _times(report.most_speed(peer))


def fact(key: str, name: str) -> Callable[[Report], str | None]:
    """Read a number of a table of a report's summary."""

    def read(report: Report) -> str | None:
        found = report.facts.get(key, {}).get(name)
        return None if found is None else f"{found:.3g}"

    return read


def _cells(report: Report, column: str) -> dict[str, float]:
    """Return a column of a report by case, of rows that have it as a number."""
    return {
        row.name: float(row.cells[column])
        for row in report.rows
        if isinstance(row.cells.get(column), int | float)
    }


def mean_cell(column: str) -> Callable[[Report], str | None]:
    """Read the arithmetic mean of a column."""

    def read(report: Report) -> str | None:
        found = _cells(report, column).values()
        return f"{sum(found) / len(found):.3g}" if found else None

    return read


def mean_share(part: str, whole: str) -> Callable[[Report], str | None]:
    """Read the arithmetic mean of one column's share of another."""

    def read(report: Report) -> str | None:
        parts, wholes = _cells(report, part), _cells(report, whole)
        shares = [parts[name] / wholes[name] for name in parts if name in wholes]
        return _percent(sum(shares) / len(shares)) if shares else None

    return read


def mean_ratio(over: str, under: str) -> Callable[[Report], str | None]:
    """Read the geometric mean of how many times one column is another."""

    def read(report: Report) -> str | None:
        above, below = _cells(report, over), _cells(report, under)
        return _times(geometric_mean(above[n] / below[n] for n in above if n in below))

    return read


def saved(column: str, before: str, after: str) -> Callable[[Report], str | None]:
    """Read by how much a column falls between cases that end in two words."""

    def read(report: Report) -> str | None:
        found = _cells(report, column)
        pairs = {
            name: name.removesuffix(before) + after
            for name in found
            if name.endswith(f" {before}")
        }
        ratios = [found[a] / found[n] for n, a in pairs.items() if a in found]
        mean = geometric_mean(ratios)
        return None if mean is None else _percent(1 - mean)

    return read


def mean_gain(column: str, device: str) -> Callable[[Report], str | None]:
    """Read the geometric mean of a column over the cases of a device."""

    def read(report: Report) -> str | None:
        found = _cells(report, column).items()
        return _times(geometric_mean(v for n, v in found if n.endswith(f" {device}")))

    return read


def one_cell(column: str, case: str) -> Callable[[Report], str | None]:
    """Read a ratio of one case."""
    return lambda report: _times(_cells(report, column).get(case))


def growth(column: str, model: str) -> Callable[[Report], str | None]:
    """Read a column from the smallest to the largest input of a model."""

    def read(report: Report) -> str | None:
        found = _cells(report, column).items()
        gains = [v for n, v in found if n.startswith(f"{model} ")]
        return " -> ".join(f"{gain:.2f}" for gain in gains) or None

    return read


def _beside_dynamo(report: Report) -> list[float]:
    """Return how many times as fast as torch.compile ours is, by its own eager."""

    def speeds(peer: str) -> Mapping[str, float]:
        rows = [row for row in report.rows if {"eager", peer} <= set(row.times)]
        return {
            row.name.removesuffix(f" {peer}"): row.times["eager"] / row.times[peer]
            for row in rows
        }

    theirs = speeds("torch.compile")
    return [s / theirs[name] for name, s in speeds(OURS).items() if name in theirs]


# Dynamo and ours before Inductor, as `front_ends.py` calls them.
_INDUCTOR = ("torch.compile", "magweld+inductor")


def _ratio(row: Row, slower: str, faster: str) -> float | None:
    times = row.times
    return times[slower] / times[faster] if {slower, faster} <= set(times) else None


def _one_graph(front_end: str) -> Callable[[Report], str | None]:
    def read(report: Report) -> str | None:
        found = _cells(report, front_end)
        equal = {r.name for r in report.rows if r.cells.get("inputs") == "equal"}
        counts = [count for name, count in found.items() if name in equal]
        return f"{counts.count(1)} of {len(counts)}" if counts else None

    return read


def _covered(by: str) -> Callable[[Report], str | None]:
    """Read the share of models that are one graph, of those that run eagerly."""

    def read(report: Report) -> str | None:
        cells = [row.cells for row in report.rows if row.cells.get("by") == by]
        every = sum(c["cases"] - c["eager"] for c in cells)
        return _percent(sum(c["full"] for c in cells) / every) if every else None

    return read


def _predicted_well(report: Report) -> str | None:
    """Read for how many kernels the bytes that are predicted are those counted."""
    bound, outside = (report.facts.get(key) for key in ("memory_bound", "outside"))
    return None if bound is None else f"{bound - len(outside)} of {bound}"


_CPU = "A CPU of two cores in place of a V100 (16 GB)"
_PLANNED = (
    "Planned for the device, not run: bytes and times are the schedule's predictions,"
    " and every operator is generated, with f32 arithmetic and no library."
)

_LESS = "transfers less"

# Name of a report of `full_run.py` -> what it stands beside.
CLAIMS: dict[str, Claim] = {
    "front_ends": Claim(
        MAGPY,
        "Fig. 15",
        (
            Quantity("over eager, mean", "1.73 x", mean_over("eager")),
            Quantity("over eager, most", "2.93 x", most_over("eager")),
            Quantity(
                "over TorchDynamo with the same back end (Inductor), mean",
                "1.68 x",
                lambda report: _times(
                    geometric_mean(_ratio(row, *_INDUCTOR) for row in report.rows)
                ),
            ),
            Quantity(
                "the same, most",
                "6.25 x",
                lambda report: _times(
                    max(
                        (r for row in report.rows if (r := _ratio(row, *_INDUCTOR))),
                        default=None,
                    )
                ),
            ),
        ),
        "A CPU in place of a GPU; torch 2.13, whose Dynamo captures far more than that"
        " of 2.0 did; of the eight models those that transformers and timm have;"
        " encoders have 4 layers in place of 12.",
    ),
    "graph_counts": Claim(
        MAGPY,
        "Table 2",
        (
            Quantity("models that are one graph", "8 of 8", _one_graph("magweld")),
            Quantity(
                "the same, TorchDynamo", "not stated", _one_graph("torch.compile")
            ),
        ),
        "Five of the eight models, and torch 2.13's Dynamo; the programs of"
        " `dynamic.py` beside them are ours.",
    ),
    "coverage": Claim(
        MAGPY,
        "Table 3",
        (
            Quantity("programs that are one graph", "93.4%", _covered("magweld")),
            Quantity("the same, TorchDynamo", "77.2%", _covered("torch.compile")),
        ),
        "Architectures of timm and transformers in place of ParityBench's 1191 programs"
        " that can be one graph; Dynamo of torch 2.13.",
    ),
    "breakdown": Claim(
        MAGPY,
        "Fig. 16",
        (
            Quantity("monitored run, mean s", "2.91", mean_cell("monitor s")),
            Quantity(
                "share of it, with Inductor",
                "23%",
                mean_share("monitor s", "monitor and inductor s"),
            ),
            Quantity(
                "share of it, with our compiler",
                "not stated",
                mean_share("monitor s", "monitor and magweld s"),
            ),
            Quantity(
                "guards and mock, of a hit", "2%", mean_share("guard ms", "hit ms")
            ),
        ),
        "A hit runs our own code on a CPU in place of Inductor's on a GPU; a monitored"
        " run is the first call less an eager one; encoders have 4 layers, not 12.",
    ),
    "changing_sizes": Claim(
        MAGPY,
        "Fig. 17",
        (
            Quantity(
                "over TorchDynamo, most",
                "2.05 x",
                most_over("torch.compile"),
            ),
            Quantity(
                "over TorchDynamo, mean", "not stated", mean_over("torch.compile")
            ),
        ),
        "Our compiler in place of Inductor behind MagPy, on a CPU; batches of 2 to 5,"
        " encoders with 4 layers in place of 12.",
    ),
    "loops": Claim(
        MAGPY,
        "Fig. 18",
        (
            Quantity(
                "over TorchDynamo, mean",
                "5.96 x",
                lambda report: _times(geometric_mean(_beside_dynamo(report))),
            ),
            Quantity(
                "over TorchDynamo, most",
                "11.59 x",
                lambda report: _times(max(_beside_dynamo(report), default=None)),
            ),
        ),
        "Cells in loops, `while` and `if` on tensors in place of LSTM and BlockDrop, on"
        " a CPU.",
    ),
    "whole_models-t2-b1": Claim(
        WELDER,
        "Fig. 9, batch 1",
        (
            Quantity("over PyTorch", "4.29 x", mean_over("eager")),
            Quantity("over ONNX Runtime", "2.07 x", mean_over("onnxruntime")),
            Quantity("over torch.compile", "not there", mean_over("torch.compile")),
        ),
        f"{_CPU}; PyTorch 2.13 in place of 1.12; some of the models, and others.",
    ),
    "whole_models-t2-b8": Claim(
        WELDER,
        "Fig. 9, batch 64",
        (
            Quantity("over PyTorch", "1.83 x", mean_over("eager")),
            Quantity("over ONNX Runtime", "1.90 x", mean_over("onnxruntime")),
            Quantity("over torch.compile", "not there", mean_over("torch.compile")),
        ),
        f"{_CPU}, and batches of 8; PyTorch 2.13 in place of 1.12; some of the models,"
        " and others.",
    ),
    "whole_models-t1-bf16": Claim(
        WELDER,
        "Fig. 10",
        (Quantity("over PyTorch", "7.18 x and 1.98 x", mean_over("eager")),),
        f"{_CPU}, and bf16 with its instructions in place of f16 and TensorCores;"
        " batch 1 in place of 1 and 64 (the two figures).",
    ),
    "ablation": Claim(
        WELDER,
        "Fig. 13",
        (
            Quantity(
                "time less by registers",
                "52%",
                saved("predicted ms", "none", "registers"),
            ),
            Quantity(
                "time less again by all",
                "29%",
                saved("predicted ms", "registers", "all"),
            ),
            Quantity(
                "kernels less again by all",
                "not stated",
                saved("kernels", "registers", "all"),
            ),
            Quantity(
                "intermediate bytes less again by all",
                "not stated",
                saved("intermediate MiB", "registers", "all"),
            ),
        ),
        f"{_PLANNED} `none` makes"
        " kernels of views as well. Models that this repository has, batch 64.",
    ),
    "patterns": Claim(
        WELDER,
        "Table 4",
        (
            Quantity(
                "distinct groups", "about 300", fact("together", "distinct groups")
            ),
            Quantity(
                "of these with two or more reductions",
                "89",
                fact("together", "with two reductions"),
            ),
            Quantity("fewest operators", "2", fact("together", "fewest operators")),
            Quantity("most operators", "48", fact("together", "most operators")),
        ),
        "Operators are counted after decomposition, where a softmax is five; the models"
        " of the table, batch 64 only, while the paper counts all its tests.",
    ),
    "input_sizes": Claim(
        WELDER,
        "Fig. 14",
        (
            Quantity("NAFNet, 64 to 512 pixels", "grows", growth("gain", "nafnet")),
            Quantity("BERT, 64 to 512 tokens", "falls", growth("gain", "bert-base")),
            Quantity(
                "Conformer, 128 to 1024 frames", "falls", growth("gain", "conformer")
            ),
        ),
        f"{_PLANNED} Attention over long rows is streamed here, unlike in the paper.",
    ),
    "accelerators": Claim(
        WELDER,
        "Fig. 15",
        (
            Quantity("MI50, over Ansor", "1.53 x", mean_gain("gain", "mi50")),
            Quantity("V100, over Ansor (Fig. 9)", "1.44 x", mean_gain("gain", "v100")),
            Quantity("H100", "not stated", mean_gain("gain", "h100")),
            Quantity("IPU", "not stated", mean_gain("gain", "ipu")),
        ),
        f"{_PLANNED} Ours is over the same compiler connecting only what melts element"
        " by element, which is what Ansor fuses.",
    ),
    "hand_fused": Claim(
        WELDER,
        "Table 3",
        (
            Quantity("over layers fused by hand", "faster", mean_over("hand-fused")),
            Quantity("over ONNX Runtime's", "not stated", mean_over("onnxruntime")),
        ),
        f"{_CPU}; torch's fused encoder layer in place of FasterTransformer, 4 layers"
        " of the size of BERT-base.",
    ),
    "traffic": Claim(
        WELDER,
        "Section 4, cost model",
        (
            Quantity(
                "memory-bound kernels predicted within 15%",
                "not stated",
                _predicted_well,
            ),
        ),
        "Bytes counted by a simulation of the caches of a CPU, where the paper reads"
        " the counters of a GPU.",
    ),
    "compile_time": Claim(
        WELDER,
        "Table 5",
        (
            Quantity(
                "seconds of the first call, mean",
                "less than a tenth of Ansor's",
                mean_cell("compiled s"),
            ),
            Quantity("the same, tuned", "likewise", mean_cell("tuned s")),
        ),
        "One encoder, for a CPU; Ansor is not here. `again` has the cache of the run"
        " before.",
    ),
    "whole_models-compute-bound": Claim(
        WELDER,
        "Table 6",
        (
            Quantity(
                "over PyTorch on ResNet-50 and UNet", "not stated", mean_over("eager")
            ),
            Quantity(
                "over ONNX Runtime",
                "as fast as TensorRT on ResNet, slower on UNet and VGG16",
                mean_over("onnxruntime"),
            ),
        ),
        f"{_CPU}, ONNX Runtime in place of TensorRT, no VGG16. Convolutions of 3x3 have"
        " Winograd's filtering here, which the paper's system does not have.",
    ),
    "memory_budget": Claim(
        WELDER,
        "Table 7",
        (
            Quantity(
                "time, eager over ours, where eager fits",
                "2.63 x (UNet), 1.89 x (VGG16), over no reuse",
                mean_ratio("eager s", "magweld s"),
            ),
            Quantity(
                "memory, eager over ours, likewise",
                "not stated",
                mean_ratio("eager MiB", "magweld MiB"),
            ),
        ),
        "Host memory alone: a call is kept within a budget of it, where the paper keeps"
        " tensors of a GPU in host memory.",
    ),
    "host_memory": Claim(
        WELDER,
        "Table 7",
        tuple(
            Quantity(f"{text}, {network} on {device}", paper, one_cell(column, case))
            for text, column, network, device, case, paper in (
                ("time", "gain", "UNet", "V100", "unet-8192 v100+host", "2.63 x"),
                ("time", "gain", "VGG16", "V100", "vgg16-8192 v100+host", "1.89 x"),
                (_LESS, _LESS, "UNet", "V100", "unet-8192 v100+host", "3.11 x"),
                (_LESS, _LESS, "VGG16", "V100", "vgg16-8192 v100+host", "2.90 x"),
                ("time", "gain", "UNet", "IPU", "unet-2048 ipu+host", "3.63 x"),
                ("time", "gain", "VGG16", "IPU", "vgg16-2048 ipu+host", "3.09 x"),
            )
        ),
        f"{_PLANNED} The paper compares with no reuse in the memory of the device, this"
        " with connecting element by element alone. Transposed convolutions run through"
        " torch and are not counted.",
    ),
    "rule_training": Claim(
        RULES,
        "text",
        (
            Quantity(
                "a training step, over torch.compile alone",
                "1.05 x to 1.15 x",
                mean_over("torch.compile"),
            ),
            Quantity(
                "a training step, over ours without batches",
                "1.05 x to 1.15 x",
                mean_over("apart"),
            ),
        ),
        "A small ranking model on a CPU in place of five production models on GPUs.",
    ),
}
