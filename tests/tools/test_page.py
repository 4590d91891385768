"""The page of `magweld explain --html`: its drawing and its text."""

from __future__ import annotations

import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from magweld.api import compile_graph
from magweld.frontend import trace
from magweld.packed_text import unpack_text
from magweld.tiers import Verdict
from magweld.tools.cli.explain import course_of
from magweld.tools.magweld_cli import main
from magweld.tools.view.bars import Bar, Scale
from magweld.tools.view.differences import differences
from magweld.tools.view.ir_texts import piece_texts, subgraph_texts
from magweld.tools.view.machine_code import machine_codes
from magweld.tools.view.page import page
from magweld.tools.view.pass_changes import pass_changes
from magweld.tools.view.rails import Edge, Part, lay_out
from magweld.tools.view.timeline import Ran, course

VOID = {"br", "input", "meta"}
STYLE = Path(__file__).parents[2] / "tools" / "view" / "style.css"


class Reader(HTMLParser):
    """Checks that every element is closed in order; collects what tests ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.outside: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            elif name in ("href", "src"):
                inside = str(value).startswith("#")
                (self.targets if inside else self.outside).append(str(value))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["style"], ["script"]):
            self.text.append(data)


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def edge(source: int, target: int, tensor: int = 0) -> Edge:
    return Edge(source, target, tensor, "level0", "")


def test_a_lane_begins_where_a_tensor_is_made() -> None:
    rails = lay_out(4, [edge(0, 3), edge(0, 2)])
    parts = [[(rail.lane, rail.part) for rail in row] for row in rails]
    assert parts == [
        [(0, Part.START)],
        [(0, Part.PASS)],
        [(0, Part.TAP)],
        [(0, Part.END)],
    ]


def test_short_lives_are_next_to_the_rows() -> None:
    rails = lay_out(3, [edge(0, 2), edge(1, 2)])
    assert [(rail.lane, rail.part) for rail in rails[2]] == [
        (0, Part.END),
        (1, Part.END),
    ]
    assert rails[1][0].part is Part.START
    assert rails[1][0].lane == 0


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(1, 8), st.integers(0, 2)), max_size=20
    )
)
def test_no_two_tensors_share_a_lane(ways: list[tuple[int, int, int]]) -> None:
    edges = [edge(a, a + length, tensor) for a, length, tensor in ways]
    rails = lay_out(17, edges)
    for row, beside in enumerate(rails):
        lanes = [rail.lane for rail in beside]
        assert len(lanes) == len(set(lanes))
        starts = {(e.source, e.tensor) for e in edges if e.source == row}
        assert sum(rail.part is Part.START for rail in beside) == len(starts)
        reads = {(e.source, e.tensor) for e in edges if e.target == row}
        ends = [rail for rail in beside if rail.part in (Part.TAP, Part.END)]
        assert len(ends) == len(reads)


def test_the_text_of_each_subgraph_is_found() -> None:
    one = '%0 = "tile_graph.subgraph"() ({{\n  body\n}}) {{subgraph_name = "{}"}}'
    indented = [
        "\n".join(f"    {line}" for line in one.format(name).splitlines())
        for name in ("a", "b")
    ]
    module = "module {\n" + "\n    other\n".join(indented) + "\n}"
    assert subgraph_texts(module) == {"a": one.format("a"), "b": one.format("b")}
    assert subgraph_texts("module {\n}") == {}


def test_the_plan_of_each_subgraph_is_found() -> None:
    plan = '%0:2 = "tile_graph.for_tiles"() ({\n^bb0:\n}) {subgraph_name = "a"}'
    library = '%1 = "tile_graph.subgraph"() ({\n}) {subgraph_name = "b"}'
    module = f"{plan}\n{library}"
    assert subgraph_texts(module, "for_tiles") == {"a": plan}
    assert subgraph_texts(module) == {"b": library}


def test_a_graph_in_pieces_has_a_text_for_each() -> None:
    assert piece_texts("// piece 0\nA\n// piece 1\nB") == ["\nA\n", "\nB"]
    assert piece_texts("A") == ["A"]


def test_the_code_of_each_function_is_counted() -> None:
    text = """
o.o:     file format elf64-x86-64

0000000000000000 <kernel_0>:
       0:\tpush   %rbp
       1:\tvmovups 0x1e0(%r12),%ymm0
       b:\tvfmadd231ps (%rax,%rdx,4),%ymm6,%ymm0
      1c:\tlea    -0x7(%rip),%rax        # 1c <kernel_0+0x1c>
      20:\tvmovaps %ymm0,0x140(%rsp,%rax,1)
      28:\tvmovss (%rax),%xmm2
      30:\tvaddps %ymm1,%ymm0,%ymm0
      38:\tjge    1 <kernel_0+0x1>
      40:\tcall   *(%rcx,%rax,1)
      42:\tret
      43:\tnopw   0x0(%rax,%rax,1)

0000000000000050 <launch_0>:
      50:\tret
"""
    codes = machine_codes(text)
    assert {name: dict(code.counts) for name, code in codes.items()} == {
        "kernel_0": {
            "instructions": 10,
            "multiply-adds": 1,
            "vector loads": 2,
            "vector stores": 1,
            "branches": 1,
            "calls": 1,
        },
        "launch_0": {
            "instructions": 1,
            "multiply-adds": 0,
            "vector loads": 0,
            "vector stores": 0,
            "branches": 0,
            "calls": 0,
        },
    }
    assert codes["launch_0"].text == "50:\tret"


def test_the_code_of_kernels_is_shown_once(page_text: str) -> None:
    shown = " ".join(read(page_text).text)
    if "No machine code is shown" in shown:
        assert "objdump" in shown
        pytest.skip("no disassembler")
    counts = re.findall(r"instructions\W.*?branches\D+(\d+)", shown)
    assert counts
    assert int(counts[0]) > 10
    # Its kernels differ.
    assert page_text.count("<summary>Machine code of") == len(counts)
    assert "%ymm" in shown or "%zmm" in shown


def test_kernels_that_are_alike_show_their_code_once() -> None:
    def repeated(x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = torch.softmax((x * 2).sort(dim=1)[0], -1)
        return x

    traced = trace(repeated, backend=compile_graph)
    with torch.no_grad():
        traced(torch.randn(64, 32))
    text = page("repeated", traced.records)
    if "No machine code is shown" not in text:
        links = re.findall(r"It runs the code of step <a href=\"#(s0-0-\d+)\">", text)
        assert len(links) >= 1
        assert f'id="{links[0]}"' in text


def test_without_a_disassembler_the_page_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    traced = trace(lambda x: x.exp() + 1, backend=compile_graph)
    with torch.no_grad():
        traced(torch.randn(64, 32))
    shown = "".join(read(page("exp", traced.records)).text)
    assert "No machine code is shown: machine code is shown by one of objdump" in shown


def test_times_of_both_ways_are_told_where_they_were_measured() -> None:
    verdict = Verdict(compiled_seconds=2e-6, torch_seconds=5e-6)
    record = record_of({}, SimpleNamespace(verdict=verdict))
    shown = " ".join(read(page("timed", [record])).text)
    assert re.search(r"a call, compiled\s+2\.?0* µs", shown)
    assert re.search(r"the same through torch\s+5\.?0* µs", shown)


def test_the_course_of_a_call_begins_with_the_call() -> None:
    ranges = [("magweld::b", 14.0, 17.0), ("magweld::a", 10.0, 12.0)]
    assert [
        (one.name, round(one.start * 1e6), round(one.seconds * 1e6))
        for one in course([*ranges, ("magweld: f", 10.0, 20.0)])
    ] == [("magweld: f", 0, 10), ("magweld::a", 0, 2), ("magweld::b", 4, 3)]
    assert course([]) == []


def test_the_course_of_a_call_is_drawn() -> None:
    traced = trace(lambda x: (x * 2).sort(dim=1)[0].softmax(-1), backend=compile_graph)
    x = torch.randn(64, 32)
    with torch.no_grad():
        traced(x)
        ran = course_of(lambda: traced(x))
    names = [one.name for one in ran]
    assert names[0].startswith("magweld: ")
    assert "magweld::sort (torch)" in names
    assert len(names) == 4
    assert all(one.start + one.seconds <= ran[0].seconds * 1.001 for one in ran)
    text = page("course", traced.records, course=ran)
    shown = " ".join(read(text).text)
    assert "A call" in shown
    for name in names:
        assert name in shown
    assert text.count('class="bar ran"') == len(ran)


def test_a_page_without_a_course_has_no_section_for_it() -> None:
    assert "A call" not in page("nothing", [])
    assert "A call" in page("one", [], course=[Ran("magweld: f", 0.0, 1e-6)])


def test_a_page_is_complete_html(page_text: str) -> None:
    reader = read(page_text)
    assert len(reader.ids) == len(set(reader.ids))
    assert {target.removeprefix("#") for target in reader.targets} <= set(reader.ids)


def test_a_page_loads_nothing(page_text: str) -> None:
    assert read(page_text).outside == []
    assert "http" not in page_text
    assert "url(" not in page_text
    assert "@import" not in page_text


def test_a_page_escapes_what_it_is_given(page_text: str) -> None:
    assert "<h1>a &lt;b&gt; &amp; &#39;c&#39;</h1>" in page_text
    assert "a <b> & 'c'" in "".join(read(page_text).text)


def test_a_page_tells_what_was_decided(page_text: str) -> None:
    shown = "".join(read(page_text).text)
    for expected in ("mm", "gelu", "dram", "l2", "Edges left unconnected", "sort"):
        assert expected in shown
    assert re.search(r"library: mm\w* is a library call", shown)
    assert re.search(r"conftest\.py:\d+", shown)
    assert '"tile_graph.subgraph"() ({' in shown
    assert '"tile_graph.for_tiles"() ({' in shown
    assert re.search(r"\d µs, [\d.]+ [nµm]?s \([\d.]+ x\)", shown)


def test_a_step_without_a_prediction_shows_what_was_measured(page_text: str) -> None:
    times = re.findall(r'<span class="note">([^<]*)</span>', page_text)
    assert any(re.fullmatch(r"[\d.]+ [nµm]?s", text) for text in times)
    assert not any(text.startswith(",") for text in times)


def test_steps_say_in_which_module_they_are_and_their_share(page_text: str) -> None:
    text = " ".join(read(page_text).text)
    assert re.search(r"\bmm\b[^a-z]+linear\b", text)
    shares = [float(share) for share in re.findall(r"(\d+\.\d)%", text)]
    assert sum(shares) == pytest.approx(100.0, abs=0.1 * len(shares))


DUMP = """// -----// IR Dump After capture //----- //
module {
  %0 = a.one
  %1 = a.two %0
}

// -----// IR Dump After remove-one //----- //
module {
  %0 = a.two %arg0
}

// -----// IR Dump After canonicalize,cse //----- //
module {
  %0 = a.two %arg0
  %1 = a.three %0
}
"""


def test_lines_that_differ_in_names_of_values_are_alike() -> None:
    captured, first, second = pass_changes(DUMP)
    assert (captured.name, captured.count, captured.lines) == ("capture", 4, ())
    assert (first.name, first.added, first.removed) == ("remove-one", 0, 1)
    assert first.lines == (
        ("@", "line 1"),
        (" ", "module {"),
        ("-", "  %0 = a.one"),
        (" ", "  %0 = a.two %arg0"),
        (" ", "}"),
    )
    assert (second.name, second.added, second.removed) == ("canonicalize,cse", 1, 0)


def test_of_a_pass_that_changes_nearly_everything_the_begin_is_shown() -> None:
    one, other = ("\n".join(f"{word} {n}" for n in range(900)) for word in "ab")
    head = "// -----// IR Dump After {} //----- //\n"
    text = f"{head.format('capture')}{one}\n{head.format('rename')}{other}\n"
    _, change = pass_changes(text)
    assert (change.added, change.removed) == (900, 900)
    assert len(change.lines) + change.left_out == 1801
    assert change.left_out > 0


def test_modules_are_kept_as_each_pass_left_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modules = [unpack_text(change.module) for change in pass_changes(DUMP)]
    assert (
        modules
        == [part.strip("\n") for part in re.split("^// .*$", DUMP, flags=re.M)][1:]
    )
    room = len(pass_changes(DUMP)[0].module)
    monkeypatch.setattr("magweld.tools.view.pass_changes._MOST_PACKED", room)
    assert [bool(change.module) for change in pass_changes(DUMP)] == [
        True,
        False,
        False,
    ]


def test_a_doubling_makes_a_bar_longer_by_the_shortest_one() -> None:
    scale = Scale([1e-6, 0.0, 4e-6, 1.024e-3])
    assert scale.bar(1.024e-3) == Bar(1.0, 1.0)
    assert scale.bar(0) == scale.bar(None) == Bar(0.0, 0.0)
    shortest, longer = scale.bar(1e-6), scale.bar(4e-6)
    assert shortest.logarithmic == pytest.approx(1 / 11)
    assert longer.logarithmic == pytest.approx(3 / 11)
    assert longer.linear == pytest.approx(4 / 1024)
    assert Scale([7.0]).bar(7.0) == Bar(1.0, 1.0)
    assert Scale([]).bar(None) == Bar(0.0, 0.0)


def test_operators_are_named_as_in_the_captured_graph(page_text: str) -> None:
    # Names of the IR are beside them, and in what a pointer shows.
    table = page_text[page_text.index('<table class="operators"') :]
    name = re.compile(
        r'<th scope="row"><span title="(\w+)">(\w+)</span>'
        r'<span class="module">([\w.]+)</span></th><td><code>(\w+)</code>'
    )
    found = name.findall(table)
    assert {module for _, _, module, _ in found} >= {"linear", "norm"}
    assert all(title == ir for title, _, _, ir in found)
    assert not any(text.startswith("generic") for _, text, _, _ in found)
    shown = re.sub(r"<code>.*?</code>|<pre.*?</pre>", "", page_text, flags=re.DOTALL)
    reasons = re.findall(r"</strong>: ([^<]*)</td>", shown)
    assert reasons
    assert not any(re.search(r"generic_\d|matmul_\d", reason) for reason in reasons)


def test_numbers_are_told_of_by_names_that_reports_have(page_text: str) -> None:
    table = page_text[page_text.index('<h2 id="numbers">') :]
    names = set(re.findall(r"<code>(\w+_\w+)</code>", table))
    assert {"predicted_seconds", "measured_seconds", "moved_after"} <= names
    x = torch.randn(64, 32)
    traced = trace(lambda x: (x * 2).softmax(-1) + 1, backend=compile_graph)
    with torch.no_grad():
        traced(x)
    compiled: Any = traced.records[0].compiled
    compiled.measure([x], 1)
    (graph,) = compiled.report()["graphs"]
    (step,) = graph["steps"]
    assert names <= {*step, *step["plan"]}


def test_lines_of_source_are_short(page_text: str) -> None:
    found = re.findall(r'<span title="([^"]*):(\d+)">([^<:]*):(\d+)</span>', page_text)
    assert found
    for full, line, short, same in found:
        assert full.endswith(short)
        assert line == same
        assert "site-packages" not in short
        assert not short.startswith(str(Path.cwd()))


def test_the_page_shows_what_each_pass_changed(page_text: str) -> None:
    shown = "".join(read(page_text).text)
    assert "From pass to pass" in shown
    for name in ("lower-torch-to-linalg", "form-tile-graph", "plan-execution"):
        assert re.search(rf"<code>{name}</code> <span[^>]*>\+\d+ -\d+ lines", page_text)
    added = re.findall(r"<ins>\+ .*?</ins>", page_text)
    assert any("tile_graph.operator" in line for line in added)


def step(name: str, *nodes: str, kind: str = "generated", tile: int = 8) -> Any:
    return {
        "name": name,
        "kind": kind,
        "operators": [{"name": node, "nodes": [node]} for node in nodes],
        "plan": {"tile": [tile], "predicted_seconds": 1e-6, "traffic_after": 1024},
    }


def compared(before: list[Any], after: list[Any]) -> Any:
    record = record_of({"graphs": [{"steps": after}]})
    (found,) = differences([{"graphs": [{"steps": before}]}], [record])
    return found


def test_steps_with_operators_in_common_are_compared() -> None:
    before = [step("a", "mul"), step("b", "add"), step("c", "sort", kind="external")]
    after = [step("a", "mul", "add"), step("b", "sort", kind="external")]
    found = compared(before, after)
    assert found.same == 1
    (row,) = found.rows
    assert row.before == ("mul (generated, tile 8)", "add (generated, tile 8)")
    assert row.after == ("mul, add (generated, tile 8)",)
    assert row.moved == ("2 KiB", "1 KiB")
    assert row.measured == ("", "")
    assert ("steps", "3", "2") in found.facts


def test_a_step_with_another_tile_is_another_one() -> None:
    assert compared([step("a", "mul")], [step("z", "mul")]).rows == ()
    (row,) = compared([step("a", "mul")], [step("a", "mul", tile=16)]).rows
    assert row.after == ("mul (generated, tile 16)",)
    # What only one compilation has stands alone.
    alone = compared([], [step("a", "mul")]).rows
    assert [(row.before, len(row.after)) for row in alone] == [((), 1)]


def test_the_page_compares_with_another_compilation(page_text: str) -> None:
    shown = " ".join(read(page_text).text)
    assert "Compared with another compilation" in shown
    assert re.search(r"mm[^()]*\(generated.*mm[^()]*\(library", shown)


def test_a_page_of_nothing() -> None:
    assert read(page("nothing", [])).open == []


def test_a_graph_left_to_torch_has_a_page() -> None:
    traced = trace(lambda x: x + 1, backend="eager")
    traced(torch.ones(3))
    shown = "".join(read(page("eager", traced.records)).text)
    assert "Nothing is compiled" in shown


def record_of(report: dict[str, Any], tiered: Any = None) -> Any:
    """Return what a page reads of a record that tells this of itself."""
    return SimpleNamespace(
        number=0,
        operators=3,
        inspectable=SimpleNamespace(report=lambda: report),
        begins="",
        ends=None,
        tiered=tiered,
        guards=(),
        breaks=[],
    )


def test_where_tuned_plans_are_from_is_told() -> None:
    tuning = {"units": 12, "reason": "no time left"}
    record = record_of({"tuning": [tuning]})
    shown = "".join(read(page("tuned", [record])).text)
    assert "plan of 12 unit(s), of the model alone: no time left" in shown


def broken(x: torch.Tensor, names: tuple[str, ...] = ("a<b>",)) -> torch.Tensor:
    y = x * len(names)
    os.getpid()
    return y.sin()


def sections(text: str) -> dict[str, str]:
    """Return the text of the sections about guards, breaks and recompiles."""
    parts = re.split(r'<h2 id="(guards|breaks|recompiles)">', text)
    return {
        name: "".join(read(f"<h2>{part.partition('</section>')[0]}").text)
        for name, part in zip(parts[1::2], parts[2::2], strict=True)
    }


def test_guards_breaks_and_recompiles_have_a_section_each() -> None:
    traced = trace(broken, backend="eager", dynamic=False)
    traced(torch.ones(3))
    traced(torch.ones(3), ("c", "d"))
    traced(torch.ones(4), ("c", "d"))
    text = page("broken", traced.records, traced.breaks, traced.recompiles)
    assert len(traced.records) == 5
    reader = read(text)
    assert len(reader.ids) == len(set(reader.ids))
    assert {target.removeprefix("#") for target in reader.targets} <= set(reader.ids)
    found = sections(text)
    for record in traced.records:
        assert f": {len(record.guards)} guards (" in found["guards"]
        for guard in record.guards:
            for part in (guard.path, guard.expected, guard.where):
                assert part in found["guards"]
    assert re.search(r"Record 0, behind .*test_page\.py:\d+ in broken", found["guards"])
    (stop,) = traced.breaks
    for part in ("native-call", "posix.getpid", stop.where, stop.refusal.hint):
        assert part in found["breaks"]
    misses = [miss for one in traced.recompiles for miss in one.misses]
    assert len(misses) > 2
    for miss in misses:
        assert miss.actual in found["recompiles"]
        assert miss.where in found["recompiles"]
    assert "expected 3, actual 4" in found["recompiles"]
    assert re.search(r"test_page\.py:\d+ in broken", found["recompiles"])


@pytest.mark.filterwarnings("ignore:backend-failed")
def test_why_a_graph_is_not_compiled_is_told_of_its_record() -> None:
    def refuse(graph: Any, inputs: Any) -> Any:
        raise RuntimeError("no such code")

    traced = trace(lambda x: x + 1, backend=refuse)
    traced(torch.ones(3))
    found = sections(page("refused", traced.records, traced.breaks))["breaks"]
    assert "backend-failed" in found
    assert "Record 0" in found
    assert "no such code" in found


def test_sections_without_rows_say_so() -> None:
    traced = trace(lambda x: x + 1, backend="eager")
    traced(torch.ones(3))
    found = sections(page("whole", traced.records, traced.breaks, traced.recompiles))
    assert "None: each call was captured as a whole" in found["breaks"]
    assert "None." in found["recompiles"]


def test_both_halves_of_a_training_graph_are_shown() -> None:
    traced = trace(torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.GELU()))
    for _ in range(2):
        traced(torch.ones(16, 24)).sum().backward()
    text = page("training", traced.records)
    assert text.count("Tile graph for cpu") == 2
    assert text.count("IR of subgraph_0") == 2
    assert text.count("Plan of a tile of subgraph_0") == 2
    assert read(text).open == []


def test_the_ir_of_another_size_is_not_shown() -> None:
    # Numbers are lifted: the text is of those that the recorded run had.
    traced = trace(lambda x, n: (x * n).reshape(n, -1).softmax(-1))
    with torch.no_grad():
        for n in (2, 4, 8, 16, 16, 16, 16):
            traced(torch.ones(64, 16), n)
    lifted = traced.records[0]
    assert lifted.inspectable is not None
    (graph,) = lifted.inspectable.report()["graphs"]
    assert [step["plan"]["tile"] for step in graph["steps"]] != []
    text = page("lifted", [lifted])
    assert "16x64" in text
    assert "IR of" not in text


def test_explain_writes_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = "import torch\ndef make():\n    return lambda x: (x * 2).softmax(-1)\n"
    (tmp_path / "small.py").write_text(model, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    words = ["explain", "small.py:make", "--inputs", "8x16xf32"]
    assert main([*words, "--html", "out.html"]) == 0
    assert "tile graph for cpu" in capsys.readouterr().out
    assert "small.py:make" in read(Path("out.html").read_text(encoding="utf-8")).text
    assert main([*words, "--measure", "--html", "-"]) == 0
    measured = capsys.readouterr().out
    assert measured.startswith("<!doctype html>")
    told = " ".join(read(measured).text)
    assert re.search(r"A call\s.*\seager\s.*\smagweld\s.*\smagweld::", told, re.S)
    more = [*words, "--inputs", "8x16xf64", "--html", "out.html"]
    assert main(more) == 0
    assert "call 2 was recorded anew" in capsys.readouterr().out
    found = sections(Path("out.html").read_text(encoding="utf-8"))
    assert "expected Float, actual Double" in found["recompiles"]
    assert main([*words, "--html", "no/such/folder.html"]) == 1
    assert "error: cannot write no/such/folder.html" in capsys.readouterr().err


def colours(dark: bool) -> dict[str, str]:
    """Return the colours of the page by name."""
    style = STYLE.read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    found = re.findall(r"--(\w+): (#[0-9a-f]{6});", blocks[1 if dark else 0])
    assert len(found) > 10
    return dict(found)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_and_lines_stand_out(dark: bool) -> None:
    # Ratios that the accessibility guidelines of the W3C ask for.
    palette = colours(dark)
    least = {name: 4.5 for name in ("ink", "soft", "link")}
    least |= {
        name: 3 for name in palette if re.fullmatch(r"l\d|after|time|measured", name)
    }
    for ground in ("paper", "raised"):
        for name, ratio in least.items():
            light = sorted(luminance(palette[one]) + 0.05 for one in (name, ground))
            assert light[1] / light[0] >= ratio, f"{name} on {ground}"
