"""Starting the workbench: its exit status, and a theme that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cudal1_core.errors import RefereeError, UnjudgeableError, UsageError
from cudal1_core.rounds import Run

from cudal1_tui import workbench
from cudal1_tui.arguments import run_parser
from tests.unit.scripted import Bench


@pytest.fixture
def run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Run:
    made = bench.run(keep_open=True)

    @contextmanager
    def prepared(options: object) -> Iterator[Run]:
        yield made

    monkeypatch.setattr(workbench, "prepared_run", prepared)
    monkeypatch.setattr(workbench.app, "main", lambda screen, mouse: screen.session.run.made() and 0)
    return made


@pytest.mark.parametrize(
    ("error", "status"),
    [(None, 0), (UnjudgeableError("bad_reference", "x"), 2), (RefereeError("x"), 3), (ValueError("x"), 3)],
)
def test_leaving_is_no_failure_but_a_failed_run_is(run: Run, error: Exception | None, status: int) -> None:
    run.error = error
    assert workbench.main(run_parser().parse_args(["model.py"])) == status


def test_an_unknown_theme_names_the_known_ones(run: Run) -> None:
    with pytest.raises(UsageError, match="no theme 'cudal1-drak'") as caught:
        workbench.main(run_parser().parse_args(["model.py", "--theme", "cudal1-drak"]))
    assert "cudal1-dark" in caught.value.meaning
