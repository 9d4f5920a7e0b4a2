"""The command line: what it accepts, what it says where it does not, and its exit status."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cudal1_tui import cli
from cudal1_tui.arguments import COMMANDS, run_parser, seconds, verify_parser
from cudal1_tui.commands.verify import judge_options

MODEL = "class Model: ...\n"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs the file"),
        (["verfy", "a.py", "b.py"], "Did you mean `cudal1-tui verify`?"),
        (["docter"], "Did you mean `cudal1-tui doctor`?"),
        (["qqq"], "neither a command nor a file"),
        (["gone.py"], "gone.py: no such file"),
        (["model.py", "--rounds", "0"], "not a whole number above 0"),
        (["model.py", "--budget", "soon"], "not a time such as"),
        (["model.py", "--device", "tpu"], "not auto, cpu, cuda or cuda:N"),
        (["model.py", "--policy", "magic"], "invalid choice: 'magic'"),
        (["model.py", "--wat"], "unrecognized arguments: --wat"),
        (["model.py", "--out", "."], "is a folder"),
        (["model.py", "--out", "gone/x.py"], "does not exist"),
        (["model.py", "--out", "model.py"], "is the reference"),
        (["model.py", "--out", "there.py"], "No file is replaced unasked"),
        (["doctor", "--nope"], "unrecognized arguments"),
        (["verify", "model.py"], "CANDIDATE.py"),
        (["verify", "model.py", "gone.py"], "gone.py: no such file"),
        (["verify", "gone.py", "model.py"], "gone.py: no such file"),
        (["verify", "model.py", "."], "is a folder"),
        (["verify", "model.py", "there.py", "--timeout", "-1"], "not a number of seconds above 0"),
        (["verify", "model.py", "there.py", "--timeout", "inf"], "not a number of seconds above 0"),
        (["verify", "model.py", "there.py", "--expose", "gone"], "--expose gone"),
        (["verify", "model.py", "there.py", "--receipt", "gone/r.json"], "does not exist"),
        (["verify"], "--receipt FILE"),
        (["verify", "--receipt", "gone.json"], "gone.json: no such file"),
        (["verify", "--receipt", "there.py"], "is no receipt"),
        (["verify", "--receipt", "there.py", "--mode", "eval"], "--mode has no meaning here"),
    ],
)
def test_wrong_usage_is_told_on_standard_error_with_status_2(
    model: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    (model.parent / "there.py").write_text(MODEL)
    assert cli.main(words) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""
    assert not (model.parent / ".cudal1").exists()


@pytest.mark.parametrize(
    ("words", "category"),
    [
        (["model.py"], None),
        (["model.py", "gone.py"], None),
        (["gone.py", "model.py"], "bad_reference"),
        (["model.py", "model.py", "--mode", "fast"], None),
    ],
)
def test_with_json_what_cannot_be_judged_is_one_object(
    model: Path, capsys: pytest.CaptureFixture[str], words: list[str], category: str | None
) -> None:
    assert cli.main(["verify", *words, "--json"]) == 2
    verdict = json.loads(capsys.readouterr().out)
    assert (verdict["verdict"], verdict["category"]) == ("unjudgeable", category)
    assert verdict["reason"]


@pytest.mark.parametrize("words", [["--help"], ["verify", "--help"], ["doctor", "--help"]])
def test_help_ends_with_status_0(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 0
    assert "usage: cudal1-tui" in capsys.readouterr().out


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    out = capsys.readouterr().out
    assert [command for command in COMMANDS if command not in out] == []


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("cudal1-tui 0.")


def test_an_internal_error_has_status_3(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cudal1_tui.cli.why_no_screen", lambda: 1 / 0)
    assert cli.main(["model.py"]) == 3
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_ctrl_c_has_status_130(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("cudal1_tui.cli.why_no_screen", interrupted)
    assert cli.main(["model.py"]) == 130


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("300", 300),
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("2m30", 150),
        (" 1h1m1s ", 3661),
    ],
)
def test_times(text: str, expected: float) -> None:
    assert seconds(text) == expected


def test_defaults_of_a_run() -> None:
    options = run_parser().parse_args(["m.py"])
    assert (options.rounds, options.group, options.budget, options.device, options.policy) == (
        3,
        4,
        None,
        "auto",
        "playbook",
    )


def test_verify_options_reach_the_referee(tmp_path: Path) -> None:
    words = [
        "r.py",
        "c.py",
        "--device",
        "cuda:1",
        "--model",
        "Net",
        "--mode",
        "eval",
        "--timeout",
        "3",
        "--build-timeout",
        "7",
    ]
    words += ["--allow-precision", "tf32", "--allow-output-reuse", "--timing", "paper", "--expose"]
    options = judge_options(verify_parser().parse_args([*words, str(tmp_path)]))
    assert (options.device, options.model, options.mode) == ("cuda:1", "Net", "eval")
    assert (options.timeout_s, options.build_timeout_s) == (3, 7)
    assert (options.allow_precision, options.allow_output_reuse) == ("tf32", True)
    assert options.expose == (tmp_path.resolve(),)
    assert options.timing_budget_s > 600


class Terminal:
    def __init__(self, answer: bool) -> None:
        self.answer = answer

    def isatty(self) -> bool:
        return self.answer


@pytest.mark.parametrize(
    ("pipe", "term", "reason"),
    [
        (None, "xterm-256color", ""),
        (None, "dumb", "cannot draw"),
        (None, "", "cannot draw"),
        ("stdin", "xterm", "standard input"),
        ("stdout", "xterm", "standard output"),
        ("stderr", "xterm", "standard error"),
    ],
)
def test_the_workbench_wants_a_real_terminal(
    monkeypatch: pytest.MonkeyPatch, pipe: str | None, term: str, reason: str
) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, Terminal(name != pipe))
    monkeypatch.setenv("TERM", term)
    said = cli.why_no_screen()
    assert reason in said
    assert bool(reason) == bool(said)
