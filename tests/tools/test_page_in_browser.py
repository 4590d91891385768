"""The page of `magweld explain --html` in a real browser."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))
import browser

from magweld.packed_text import unpack_text

NO_BROWSER = "no Chromium: `make browser` fetches one, CHROMIUM names one"


@pytest.fixture(scope="module")
def opened(
    page_text: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[browser.Page]:
    found = browser.find_browser()
    if found is None:
        pytest.skip(NO_BROWSER)
    folder = tmp_path_factory.mktemp("browser")
    (folder / "page.html").write_text(page_text, encoding="utf-8")
    with browser.running(found, folder) as started:
        started.open(folder / "page.html")
        yield started


@pytest.fixture
def shown(opened: browser.Page) -> browser.Page:
    """The page as it is when it has just been opened."""
    opened.media()
    opened.resize(1200, 900)
    opened.evaluate(
        "{ location.hash = ''; document.querySelector('[data-all=\"\"]').click();"
        " const f = document.getElementById('filter'); f.value = '';"
        " f.dispatchEvent(new Event('input')); document.activeElement.blur(); }"
    )
    return opened


OPEN = "document.querySelectorAll('.step > details[open]').length"
STEPS = "document.querySelectorAll('[role=listitem]').length"
FOCUS = "document.activeElement.closest('.step')?.id"


def test_the_page_runs_without_complaints(shown: browser.Page) -> None:
    assert shown.complaints() == []
    assert shown.evaluate("performance.getEntriesByType('resource').length") == 0
    assert shown.evaluate(STEPS) >= 3
    roles = shown.roles()
    searches = [name for role, name in roles if role == "searchbox"]
    assert [name.strip() for name in searches] == ["Show steps with"]
    assert ("list", "Steps") in roles
    assert sum(role == "listitem" for role, _ in roles) >= 3
    assert any(role == "table" and "by memory level" in name for role, name in roles)


def test_a_click_opens_a_step(shown: browser.Page) -> None:
    assert shown.evaluate(OPEN) == 0
    shown.click("#s0-0-1 summary")
    assert shown.evaluate("document.querySelector('#s0-0-1 > details').open")
    assert shown.evaluate(
        "document.querySelector('#s0-0-1 .operators').checkVisibility()"
    )
    shown.click("[data-all=open]")
    assert shown.evaluate(f"{OPEN} == {STEPS}")


def test_keys_lead_through_the_steps(shown: browser.Page) -> None:
    shown.evaluate("document.querySelector('#s0-0-0 summary').focus()")
    shown.press("ArrowDown", 40)
    assert shown.evaluate(FOCUS) == "s0-0-1"
    shown.press("Enter", 13, "\r")
    assert shown.evaluate("document.querySelector('#s0-0-1 > details').open")
    shown.press("ArrowUp", 38)
    assert shown.evaluate(FOCUS) == "s0-0-0"


def test_a_link_leads_to_its_step(shown: browser.Page) -> None:
    shown.click("#s0-0-1 summary")
    shown.click("#s0-0-1 .edges a[href='#s0-0-0']")
    shown.wait_for("document.querySelector('#s0-0-0 > details').open")
    assert shown.evaluate(FOCUS) == "s0-0-0"


def test_a_list_of_guards_opens(shown: browser.Page) -> None:
    table = "document.querySelector('.list table')"
    assert not shown.evaluate(f"{table}.checkVisibility()")
    shown.click("a[href='#guards']")
    shown.click(".list summary")
    assert shown.evaluate(f"{table}.checkVisibility()")
    assert shown.evaluate(f"{table}.rows.length") > 50
    roles = shown.roles()
    for name in ("Guards", "Breaks", "Calls that no record answered"):
        assert ("region", name) in roles
    shown.click(".list summary")


def test_ir_gets_colours_when_it_is_opened(shown: browser.Page) -> None:
    spans = "document.querySelectorAll('.diff [class^=t-]').length"
    texts = (
        "[...document.querySelectorAll('.diff')].map((pre) => pre.textContent).join()"
    )
    before = shown.evaluate(texts)
    assert shown.evaluate(spans) == 0
    for change in ("form-tile-graph", "plan-execution"):
        shown.evaluate(
            "for (const d of document.querySelectorAll('.change'))"
            f" if (d.textContent.trim().startsWith('{change}')) d.open = true"
        )
    shown.wait_for(f"{spans} > 50")
    for kind in ("op", "value", "type", "number", "string"):
        assert shown.evaluate(f"document.querySelectorAll('.diff .t-{kind}').length")
    assert shown.evaluate(texts) == before


def test_the_module_after_a_pass_is_unpacked(shown: browser.Page) -> None:
    change = "[...document.querySelectorAll('.change')].find("
    change += "d => d.textContent.trim().startsWith('form-tile-graph'))"
    module = f"{change}.querySelector('[data-packed] > pre')"
    assert shown.evaluate(f"{module}.textContent") == ""
    shown.evaluate(f"{change}.open = true, {module}.parentElement.open = true")
    shown.wait_for(f"{module}.querySelectorAll('.t-op').length > 5")
    text = shown.evaluate(f"{module}.textContent")
    packed = shown.evaluate(f"{module}.parentElement.dataset.packed")
    assert text == unpack_text(packed)
    assert "tile_graph.operator" in text
    assert shown.complaints() == []


def test_every_offset_of_machine_code_has_the_same_colour(shown: browser.Page) -> None:
    code = "[...document.querySelectorAll('.ir')].find("
    code += "d => d.querySelector('summary').textContent.startsWith('Machine code'))"
    if not shown.evaluate(f"Boolean({code})"):
        pytest.skip("no objdump, so no machine code")
    shown.evaluate(f"{code}.open = true")
    shown.wait_for(f"{code}.querySelectorAll('.t-op').length > 5")
    offsets = shown.evaluate(f"{code}.querySelectorAll('.t-place').length")
    text = shown.evaluate(f"{code}.querySelector('pre').textContent")
    assert offsets == len(re.findall(r"^\s*[0-9a-f]+:\s", text, re.M))


def test_bars_are_logarithmic_or_linear(shown: browser.Page) -> None:
    def widths(scale: str) -> list[float]:
        shown.evaluate(
            "{ const s = document.getElementById('bars');"
            f" s.value = '{scale}'; s.dispatchEvent(new Event('change')); }}"
        )
        bars = "[...document.querySelectorAll('.steps .line .bar.measured')]"
        inside = "b.getBoundingClientRect().width / b.parentElement.offsetWidth"
        found: list[float] = shown.evaluate(f"{bars}.map(b => {inside})")
        return found

    rows = "[...document.querySelectorAll('[role=listitem]')]"
    seconds = shown.evaluate(f"{rows}.map(row => Number(row.dataset.measured))")
    longest = max(widths("linear"))
    for value, width in zip([s for s in seconds if s], widths("linear"), strict=True):
        # A bar is a pixel long at least.
        share = max(value / max(seconds), 0) * longest
        assert width == pytest.approx(share, abs=0.02)
    sentence = "document.querySelector('.scale').checkVisibility()"
    assert not shown.evaluate(sentence)
    logarithmic = widths("log")
    assert shown.evaluate(sentence)
    assert min(logarithmic) > 0.02
    order = sorted(range(len(logarithmic)), key=[s for s in seconds if s].__getitem__)
    assert [logarithmic[n] for n in order] == sorted(logarithmic)


def test_the_filter_hides_what_does_not_match(shown: browser.Page) -> None:
    shown.evaluate("document.getElementById('filter').focus()")
    for letter in "library":
        shown.press(letter, ord(letter.upper()), letter)
    visible = "document.querySelectorAll('[role=listitem]:not([hidden])').length"
    count = shown.evaluate(visible)
    assert 0 < count < shown.evaluate(STEPS)
    status = shown.evaluate("document.getElementById('shown').textContent")
    assert status == f"{count} of {shown.evaluate(STEPS)} steps"


def test_steps_are_sorted_by_what_is_chosen(shown: browser.Page) -> None:
    def chosen(order: str) -> tuple[list[float], list[str]]:
        shown.evaluate(
            "{ const s = document.getElementById('order');"
            f" s.value = '{order}'; s.dispatchEvent(new Event('change')); }}"
        )
        rows = "[...document.querySelectorAll('[role=listitem]')]"
        keys = shown.evaluate(f"{rows}.map(row => Number(row.dataset.{order}))")
        return keys, shown.evaluate(f"{rows}.map(row => row.id)")

    _, running = chosen("order")
    for order in ("predicted", "measured", "bytes"):
        keys, names = chosen(order)
        assert keys == sorted(keys, reverse=True)
        assert sorted(names) == sorted(running)
        hidden = "getComputedStyle(document.querySelector('.rails svg')).visibility"
        assert shown.evaluate(hidden) == "hidden"
    assert chosen("order")[1] == running


def test_edges_are_drawn_where_the_steps_are(shown: browser.Page) -> None:
    # The line of a tensor reaches from one row to the next, however high rows are.
    rectangles = (
        "[...document.querySelectorAll('.steps > [role=listitem]')].map(step => {"
        " const r = step.getBoundingClientRect();"
        " const s = step.querySelector('svg').getBoundingClientRect();"
        " return [r.top, r.bottom, s.top, s.bottom]; })"
    )
    for _ in range(2):
        rows = shown.evaluate(rectangles)
        for top, bottom, drawn_top, drawn_bottom in rows:
            assert (drawn_top, drawn_bottom) == pytest.approx((top, bottom), abs=1)
        shown.click("#s0-0-0 summary")
    assert shown.evaluate("document.querySelectorAll('.steps svg line').length") > 4


def test_dark_and_printed(shown: browser.Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    assert shown.evaluate(ground) == "rgb(255, 255, 255)"
    shown.media(prefers_color_scheme="dark")
    assert shown.evaluate(ground) == "rgb(20, 23, 27)"
    shown.media("print", prefers_color_scheme="dark")
    assert shown.evaluate(ground) == "rgb(255, 255, 255)"
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown.evaluate(f"{OPEN} == {STEPS}")
    shown.evaluate("dispatchEvent(new Event('afterprint'))")
    assert shown.evaluate(OPEN) == 0


@pytest.mark.parametrize("width", [320, 480, 700, 1200])
def test_nothing_sticks_out(shown: browser.Page, width: int) -> None:
    shown.resize(width, 900)
    shown.click("[data-all=open]")
    assert shown.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


def test_a_picture_shows_more_than_one_colour(
    shown: browser.Page, tmp_path: Path
) -> None:
    shown.screenshot(tmp_path / "page.png")
    with Image.open(tmp_path / "page.png") as picture:
        assert picture.size == (1200, 900)
        colours = picture.convert("RGB").getcolors(1 << 20) or []
        assert len(colours) > 20
        # The lines of tensors in memory.
        assert any(colour == (0xC2, 0x4A, 0x00) for _, colour in colours)
