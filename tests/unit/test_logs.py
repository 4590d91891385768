"""The topics of the log: what the variables show, and what users set up themselves."""

from __future__ import annotations

import io
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator

import pytest

from magweld import env
from magweld.logs import expected_errors, show_logs, topic

Ask = Callable[..., None]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ask]:
    """Set the variables, as if nobody had set up logging; take all back at the end."""

    def show(topics: str = "", debug: str = "") -> None:
        # Those of pytest stand for handlers of a user's.
        monkeypatch.setattr(logging.getLogger(), "handlers", [])
        monkeypatch.setenv("MAGWELD_LOGS", topics)
        monkeypatch.setenv("MAGWELD_DEBUG", debug)
        show_logs()

    yield show
    show()


def say_something() -> None:
    """Write a line of each level to each topic and to a module's logger."""
    for name in env.LOG_TOPICS:
        topic(name).info("info of %s", name)
        topic(name).debug("detail of %s", name)
    logging.getLogger("magweld.some.module").info("info of a module")
    logging.getLogger("magweld.some.module").debug("detail of a module")


def shown(capsys: pytest.CaptureFixture[str]) -> set[str]:
    say_something()
    lines = capsys.readouterr().err.splitlines()
    return {line.partition(": ")[2] for line in lines}


EVERYTHING = {
    f"{kind} of {name}"
    for kind in ("info", "detail")
    for name in (*env.LOG_TOPICS, "a module")
}


@pytest.mark.parametrize(
    ("topics", "debug", "expected"),
    [
        ("", "", set()),
        (
            " records , guards",
            "0",
            {f"{k} of {n}" for k in ("info", "detail") for n in ("records", "guards")},
        ),
        ("all", "", EVERYTHING),
        ("records,all", "", EVERYTHING),
        ("", "1", {line for line in EVERYTHING if line.startswith("info")}),
        ("", "2", EVERYTHING),
        (
            "guards",
            "1",
            {line for line in EVERYTHING if line.startswith("info")}
            | {"detail of guards"},
        ),
    ],
)
def test_the_variables_choose_what_is_shown(
    topics: str,
    debug: str,
    expected: set[str],
    ask: Ask,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ask(topics, debug)
    assert shown(capsys) == expected


def test_a_line_has_a_time_and_its_topic(
    ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    ask("breaks")
    topic("breaks").info("a line")
    time, _, rest = capsys.readouterr().err.partition(" ")
    assert rest == "magweld.breaks: a line\n"
    assert len(time) == len("12:34:56.789")


def test_another_value_takes_the_place_of_the_one_before(
    ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    ask("records")
    ask("breaks")
    ask("breaks")
    assert shown(capsys) == {"info of breaks", "detail of breaks"}
    ask("")
    assert shown(capsys) == set()
    assert logging.getLogger("magweld").handlers == []
    assert topic("breaks").level == logging.NOTSET


def test_an_unknown_topic_is_one_warning_with_the_nearest_and_all_names(
    ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.warns(UserWarning, match="MAGWELD_LOGS") as caught:
        ask("recrods,breaks,zzz")
    (warning,) = caught
    text = str(warning.message)
    assert "'recrods', did you mean 'records'?" in text
    assert "there is no topic 'zzz';" in text
    assert all(name in text for name in (*env.LOG_TOPICS, "all", "help"))
    assert shown(capsys) == {"info of breaks", "detail of breaks"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        show_logs()


def test_help_lists_the_topics(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    ask("help")
    text = capsys.readouterr().err
    for name, doc in env.LOG_TOPICS.items():
        assert name in text
        assert doc in text
    show_logs()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["magweld", "magweld.guards"])
def test_who_has_set_a_level_is_left_alone(
    name: str,
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.getLogger(name), "level", logging.ERROR)
    ask("all")
    assert logging.getLogger("magweld").handlers == []
    assert topic("records").level == logging.NOTSET


def test_who_has_a_handler_is_left_alone(ask: Ask) -> None:
    theirs = logging.NullHandler()
    topic("records").addHandler(theirs)
    try:
        ask("records")
        assert logging.getLogger("magweld").handlers == []
        assert topic("records").handlers == [theirs]
        assert topic("records").level == logging.NOTSET
    finally:
        topic("records").removeHandler(theirs)


def test_handlers_of_the_root_logger_get_the_lines_instead(
    ask: Ask, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    ask("records")
    monkeypatch.setattr(
        logging.getLogger(), "handlers", [logging.StreamHandler(stream)]
    )
    say_something()
    assert stream.getvalue() == "info of records\ndetail of records\n"
    assert capsys.readouterr().err == ""


def test_a_closed_stderr_does_not_end_the_program(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("records")
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    topic("records").info("a line")
    monkeypatch.setattr(sys, "stderr", None)
    topic("records").info("a line")


def test_a_topic_that_is_not_listed_has_no_logger() -> None:
    with pytest.raises(KeyError):
        topic("recrods")


def test_what_torch_raises_without_data_is_not_logged_where_it_is_expected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    inside, leave = threading.Event(), threading.Event()

    def expecting() -> None:
        with expected_errors():
            logger.error("of the thread")
            inside.set()
            assert leave.wait(60)

    thread = threading.Thread(target=expecting)
    with caplog.at_level(logging.ERROR, logger.name):
        thread.start()
        assert inside.wait(60)
        logger.error("of another thread")
        leave.set()
        thread.join()
        with pytest.raises(ZeroDivisionError), expected_errors():
            logger.error(f"before the end {1 // 0}")
        logger.error("behind it")
    assert [r.getMessage() for r in caplog.records] == [
        "of another thread",
        "behind it",
    ]
