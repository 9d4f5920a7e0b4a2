"""A report holds what the run found, says it safely, and can be made from a stored run."""

from __future__ import annotations

import json
import sys
import threading
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from cudal1_core.events import DecisionMade, to_json

from cudal1_tui import report
from cudal1_tui.cli import main
from cudal1_tui.state import reduce
from cudal1_tui.view import View
from tests.tui import recorded

if TYPE_CHECKING:
    from pathlib import Path

    from tests.tui.conftest import Opened


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]


@pytest.fixture
def done() -> View:
    view = View()
    kept = DecisionMade(candidate="c03", decision="kept", path="/home/me/softmax_optimized.py")
    for event in [*recorded.middle("/home/me/softmax.py"), *recorded.rest(), kept]:
        view = reduce(view, event, 0.0)
    return view


def test_both_reports_hold_every_candidate_and_the_evidence_of_the_best(done: View) -> None:
    for text in (report.as_markdown(done), report.as_html(done)):
        for row in done.rows:
            assert row.id in text
        for part in ("2.31x", "[2.28–2.34]", "timed out", "tl.load", "softmax_optimized.py"):
            assert part in text.replace("\\", "")


def test_the_plot_has_a_mark_for_each_that_was_timed(done: View) -> None:
    tags = Tags(report.as_html(done)).tags
    assert tags.count("circle") == sum(row.speedup is not None for row in done.rows) > 0
    assert report.plot(View()) == ""


def test_foreign_text_stays_text_in_a_report() -> None:
    bad = recorded.candidate("c01", 1, "<script>alert(1)</script> [x](javascript:y) | `", "```\n<img src=x>\n```\n")
    view = View()
    for event in [*recorded.opening("/x/<b>.py"), *recorded.judged(bad, recorded.accepted(2.0, 0.1))]:
        view = reduce(view, event, 0.0)
    page = Tags(report.as_html(view))
    assert not {"script", "img", "b"} & set(page.tags)
    assert page.loads == []
    markdown = report.as_markdown(view)
    assert "\\<script\\>" in markdown
    assert "````python" in markdown


def test_a_stored_run_is_exported_and_a_cut_last_line_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ".cudal1" / "runs" / "20261130-221544-7f3a"
    folder.mkdir(parents=True)
    lines = [to_json(event) for event in [*recorded.middle("/home/me/softmax.py"), *recorded.rest()]]
    (folder / "events.jsonl").write_text("\n".join([*lines, lines[-1][:20]]))
    monkeypatch.chdir(tmp_path)
    assert main(["export"]) == 0
    assert capsys.readouterr().out.split() == [str(folder / "report.md"), str(folder / "report.html")]
    out = tmp_path / "mine.html"
    assert main(["export", folder.name, "--out", str(out)]) == 0
    assert out.read_text() == (folder / "report.html").read_text()
    assert main(["export", folder.name, "--out", str(out)]) == 2
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "", json.dumps({"event": "made_up"}) + "\n{}\n"])
def test_what_is_no_run_is_told(tmp_path: Path, content: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "events.jsonl"
    if content is not None:
        path.write_text(content)
    assert main(["export", str(path)]) == 2
    assert str(path) in capsys.readouterr().err


async def test_e_writes_both_and_says_where(opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened() as desk:
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("e")
        assert str(tmp_path / "report.md") in desk.said[-1]
        assert "c03" in (tmp_path / "report.html").read_text()


async def test_o_says_where_no_editor_can_be_shown(opened: Opened) -> None:
    async with opened() as desk:
        await desk.press("o")
        assert "no code" in desk.said[-1]
        await desk.tell(recorded.middle(str(desk.reference)))
        await desk.press("b", "o")  # a test has no terminal to hand over
        assert "cannot be handed" in desk.said[-1]


def test_an_editor_changes_a_copy_and_never_the_judged_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cudal1_tui.editor import edit_copy

    judged = tmp_path / "c03.py"
    judged.write_text("x = 1\n")
    monkeypatch.delenv("VISUAL", raising=False)
    for program, said in (
        ("pass", "Unchanged"),
        ("import sys; open(sys.argv[1], 'a').write('y')", "cudal1-tui verify ref.py"),
        ("raise SystemExit(3)", "status 3"),
    ):
        monkeypatch.setenv("EDITOR", f'{sys.executable} -c "{program}"')
        assert said in edit_copy("c03", "x = 1\n", tmp_path, "ref.py", threading.Event()).text
    assert judged.read_text() == "x = 1\n"
    assert (tmp_path / "c03_edited.py").read_text() == "x = 1\ny"
    monkeypatch.setenv("EDITOR", "/no/such/editor")
    assert "Set EDITOR" in edit_copy("c03", "x = 1\n", tmp_path, "ref.py", threading.Event()).text
