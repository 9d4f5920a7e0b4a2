"""Reports: what they say, and that no name, reason or label in them is ever markup."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from cudal1_core.bench.markdown import as_markdown
from cudal1_core.bench.page import as_html
from cudal1_core.bench.sheet import as_csv, as_json
from cudal1_core.bench.table import make_report
from cudal1_core.verdict import Verdict

from tests.bench.rows import accepted, rejected, row

HOSTILE = "<script>alert(1)</script>|`*_[x](javascript:1)\x1b[31m\n# heading &amp; \"'>\u202e\ud800"

ROWS = [
    accepted("L2/96", 1.28, (1.27, 1.29), claimed={"eager": 368.2}, found=("CUDA graphs",)),
    accepted("L1/12", 40.0, claimed={"eager": 20.0}),
    accepted("L2/80", 9.0, labels=("constant_output",), win="constant"),
    rejected("L1/2", "wrong_result", "row 3 differs by 0.5", claimed={"eager": 65.8}),
    rejected("L1/3", "no_code", "there is none"),
    row("L1/4", Verdict("unjudgeable", "nondeterministic", "it varies")),
]


class Reader(HTMLParser):
    """Fails on tags that do not close in order; keeps tags, attributes and text."""

    VOID = ("meta", "br", "hr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def lines_of(text: str, heading: str) -> list[str]:
    """The lines of a table under a heading, without its head."""
    part = text.split(f"## {heading}\n")[1].partition("\n## ")[0]
    return [line for line in part.splitlines() if line.startswith("| ")][2:]


def test_every_task_has_a_line_that_begins_with_it() -> None:
    lines = lines_of(as_markdown(make_report(ROWS, "t")), "Every task")
    assert [line.split(" | ")[0] for line in lines] == [
        "| L1/2", "| L1/3", "| L1/4", "| L1/12", "| L2/80", "| L2/96",
    ]  # fmt: skip
    assert lines[-1].startswith("| L2/96 | accepted | 1.28x | 1.27–1.29 | 1.28 | 1 | 368.20x |")


def test_every_rejected_candidate_with_code_is_named_with_its_reason_in_one_line() -> None:
    text = as_markdown(make_report(ROWS, "t"))
    assert lines_of(text, "Every rejected candidate") == ["| L1/2 | wrong result | row 3 differs by 0.5 |"]
    assert lines_of(text, "Without code") == ["| 1 | L1/3 |"]
    assert lines_of(text, "Not judged") == ["| L1/4 | nondeterministic | it varies |"]
    assert lines_of(text, "Flawed tasks") == ["| L2/80 | constant\\_output | accepted | 9.00x |"]


def test_the_method_counts_what_was_judged_where() -> None:
    text = as_markdown(make_report(ROWS, "t"))
    assert "6 tasks, 5 candidates with code: 3 accepted, 1 rejected, 1 could not be judged." in text
    assert "Judged on NVIDIA H200 with torch 2.13.0, CUDA 13.0, Python 3.11.7" in text


def test_claims_are_held_against_what_was_measured() -> None:
    text = as_markdown(make_report(ROWS, "t"))
    assert (
        "2 accepted candidates came with a claim: 194.10x in the median, 20.64x measured. "
        "1 of them reach it (it is not above the interval). The 1 rejected claimed up to 65.80x."
    ) in text
    assert lines_of(text, "Claimed and measured")[0] == "| L2/96 | 368.20x | 1.28x | 1.27–1.29 |"


def test_the_page_is_well_formed_and_loads_and_runs_nothing() -> None:
    page = as_html(make_report(ROWS, "The table"))
    reader = read(page)
    assert reader.tags & {"script", "link", "img", "iframe", "object"} == set()
    assert not re.search(r"(?:src|href)=|url\(|@import", page)
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(plots) == 3
    for plot in plots:
        ElementTree.fromstring(plot)
    assert "L2/96: claimed 368.20x, measured 1.28x" in page


def test_a_table_of_the_size_of_the_release_is_light_enough_to_mail() -> None:
    rows = [
        accepted(f"L1/{n}", 1 + n / 100, claimed={"eager": 2.0}, labels=("no_authored_kernel", "not_drop_in"))
        for n in range(150)
    ]
    rows += [rejected(f"L2/{n}", "wrong_result", "x" * 300) for n in range(100)]
    assert len(as_html(make_report(rows, "t")).encode()) < 250_000


@pytest.mark.parametrize("where", ["task", "candidate", "reason", "label", "win", "technique", "policy", "title"])
def test_hostile_text_is_never_markup(where: str) -> None:
    good = accepted(
        HOSTILE if where == "task" else "L1/1",
        2.0,
        claimed={"eager": 3.0},
        labels=(HOSTILE,) if where == "label" else (),
        win=HOSTILE if where == "win" else "kernel",
        found=(HOSTILE,) if where == "technique" else (),
        policy=HOSTILE if where == "policy" else "",
    )
    bad = rejected(
        "L1/2", "crashed", HOSTILE if where == "reason" else "", candidate=HOSTILE if where == "candidate" else "c"
    )
    report = make_report([good, bad], HOSTILE if where == "title" else "t")
    page = as_html(report)
    reader = read(page)
    page.encode("utf-8")
    assert "script" not in reader.tags
    assert any("<script>alert(1)</script>" in text for text in reader.text)
    assert reader.attributes <= {
        "lang", "charset", "name", "content", "http-equiv", "class", "viewbox", "role", "aria-label", "x", "y", "x1",
        "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "fill", "stroke", "text-anchor",
    }  # fmt: skip
    text = as_markdown(report)
    assert "\x1b" not in text
    assert "\n# heading" not in text
    assert not re.search(r"(?<!\\)<script", text)
    assert not re.search(r"(?<!\\)\[x\]", text)
    for line in text.splitlines():
        if line.startswith("| "):
            assert re.split(r"(?<!\\)\|", line)[0] == ""
            assert len(re.split(r"(?<!\\)\|", line)) in {4, 5, 6, 7, 9, 10, 13}  # no cell more than its table has
    json.loads(as_json(report))
    list(csv.reader(io.StringIO(as_csv(report))))


def test_the_sheet_has_a_line_a_candidate_and_no_formula() -> None:
    rows = [*ROWS, rejected("L3/1", "crashed", "=HYPERLINK(1)", candidate="@SUM")]
    lines = list(csv.DictReader(io.StringIO(as_csv(make_report(rows, "t")))))
    assert len(lines) == 7
    assert (lines[5]["task"], lines[5]["speedup"], lines[5]["low"], lines[5]["claimed"]) == (
        "L2/96", "1.28", "1.27", "368.2",
    )  # fmt: skip
    assert (lines[6]["reason"], lines[6]["candidate"]) == ("'=HYPERLINK(1)", "'@SUM")


def test_json_holds_the_figures() -> None:
    facts = json.loads(as_json(make_report(ROWS, "t", ROWS)))
    assert facts["figures"][0]["name"] == "sound tasks"
    assert facts["figures"][0]["fast_p"]["1"] == pytest.approx(2 / 4)
    assert facts["flawed"] == {"L2/80": ["constant_output"]}
    assert (facts["agreement"]["both"], facts["agreement"]["same"]) == (4, 4)
