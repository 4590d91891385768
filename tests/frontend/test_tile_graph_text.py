"""The text about tile graphs, from plain data."""

from __future__ import annotations

from typing import Any

from magweld.reports import operators_of
from magweld.tile_graphs import describe_graph

DEVICE = {"name": "toy", "levels": [{"name": "dram"}, {"name": "l2"}]}


def step(number: int, kind: str = "generated", **more: Any) -> dict[str, Any]:
    nodes = (f"mul_{number}", f"sum_{number}_1")
    return {
        "name": f"subgraph_{number}",
        "kind": kind,
        "operators": [{"name": f"generic_{n}", "nodes": (n,)} for n in nodes],
        "plan": {
            "level": "l2",
            "tile": (4, 16),
            "footprint": 2048,
            "traffic_before": 4096,
            "traffic_after": 1024,
            "moved_before": {"dram": 4096},
            "moved_after": {"dram": 1024, "l2": 2048},
            "predicted_seconds": 2e-6,
            "predicted_shares": {"dram": 1.5e-6, "l2": 5e-7, "arithmetic": 1e-7},
            "seconds_apart": 5e-6,
        },
        **more,
    }


def edge(number: int, refused: str) -> dict[str, Any]:
    return {
        "producer": f"subgraph_{number}",
        "consumer": f"subgraph_{number + 1}",
        "type": "8x128xf32",
        "bytes": 4096,
        "refused": refused,
    }


def text(**more: Any) -> str:
    graph = {"device": DEVICE, "steps": [], "edges": [], **more}
    return "\n".join(describe_graph(graph))


def test_equal_steps_are_one_row() -> None:
    found = text(steps=[step(0), step(1), step(2, "library")])
    assert "tile graph for toy: 2 generated, 1 library" in found
    rows = [line.split("  ") for line in found.splitlines() if " x " in line]
    assert [row[1].strip() for row in rows] == ["2 x", "1 x"]
    assert "subgraph_0  mul, sum" in found
    assert "subgraph_1" not in found


def test_totals_are_of_all_steps() -> None:
    found = text(steps=[step(0), step(1)])
    assert "predicted 4 µs, 10 µs unfused" in found
    dram = next(line for line in found.splitlines() if "dram" in line.split())
    assert dram.split() == ["dram", "8", "KiB", "2", "KiB", "3", "µs"]


def test_the_slowest_part_is_named() -> None:
    assert text(steps=[step(0)]).splitlines()[-1].split()[-3:] == ["2", "µs", "dram"]


def test_measured_times_are_means_of_equal_steps() -> None:
    steps = [step(0, measured_seconds=1e-6), step(1, measured_seconds=3e-6)]
    found = text(steps=steps)
    assert "measured 4 µs" in found
    assert found.splitlines()[-1].split()[-3:] == ["2", "µs", "dram"]
    assert "measured" not in text(steps=[step(0)])


def test_edges_that_stay_apart_have_rule_and_number() -> None:
    slower = "slower: 2.000e-06 s together, 1.000e-06 s apart"
    edges = [
        edge(0, ""),
        edge(1, "library: matmul_1 is a library call"),
        edge(2, "library: matmul_2 is a library call"),
        edge(3, slower),
    ]
    lines = text(edges=edges).splitlines()
    assert lines[1] == "not connected: 2 library, 1 slower"
    assert lines[2].split("  ")[1] == "2 x"
    assert "8 KiB: library: matmul_1 is a library call" in lines[2]
    assert lines[3].endswith(f"4 KiB: {slower}")


def test_many_edges_are_counted() -> None:
    edges = [edge(n, f"rule: {'x' * n}") for n in range(20)]
    assert text(edges=edges).splitlines()[-1] == "  ... 8 more"


def test_an_external_step_has_its_name() -> None:
    external = {"name": "sort_1", "kind": "external", "operators": [], "plan": None}
    assert operators_of(external) == ["sort"]
    assert "nothing to run" in text()
    assert "1 external" in text(steps=[external])
