"""`cudal1-tui verify` from the outside: one object, one exit status."""

from __future__ import annotations

import json

from tests.e2e.workshop import Workshop

KEYS = [
    "verdict", "category", "reason", "speedup", "speedup_interval", "reference_ms", "candidate_ms", "win",
    "baselines", "checks", "labels", "device", "isolation", "versions", "seed", "roofline", "advice",
]  # fmt: skip


def test_right_is_accepted_with_its_evidence_and_a_receipt(workshop: Workshop) -> None:
    words = (
        "verify",
        "model.py",
        "right.py",
        "--device",
        "cpu",
        "--json",
        "--explain",
        "--receipt",
        "r.json",
    )
    ended = workshop.run(*words)
    assert ended.returncode == 0, ended.stderr
    verdict = json.loads(ended.stdout)
    assert list(verdict) == KEYS
    assert (verdict["verdict"], verdict["category"], verdict["reason"]) == ("accepted", None, None)
    low, high = verdict["speedup_interval"]
    assert 0 < low <= high
    assert low - 0.01 <= verdict["speedup"] <= high + 0.01  # rounded towards 1
    assert all(check["passed"] for check in verdict["checks"])
    assert all(check["name"] in ended.stderr for check in verdict["checks"])
    assert "impostors - are zeros" in ended.stderr  # the task's own checks
    receipt = json.loads((workshop.folder / "r.json").read_text())
    assert verdict.pop("advice") == {"labels": [], "findings": [], "similar": [], "review": None}
    assert receipt["verdict"] == verdict
    assert len(receipt["files"]["candidate"]["sha256"]) == 64


def test_a_receipt_judges_its_pair_again_and_says_whether_it_agrees(workshop: Workshop) -> None:
    assert workshop.run("verify", "model.py", "wrong.py", "--device", "cpu", "--receipt", "r.json").returncode == 1
    again = workshop.run("verify", "--receipt", "r.json", "--json")
    assert again.returncode == 0, again.stderr
    told = json.loads(again.stdout)
    assert told["agrees"]
    assert (told["then"]["category"], told["now"]["category"]) == ("wrong_result", "wrong_result")
    receipt = json.loads((workshop.folder / "r.json").read_text())
    receipt["verdict"]["category"] = "crashed"
    (workshop.folder / "r.json").write_text(json.dumps(receipt))
    workshop.write("wrong.py", "broken on purpose")  # the receipt's own copy is judged
    ended = workshop.run("verify", "--receipt", "r.json")
    assert ended.returncode == 1, ended.stderr
    assert "wrong.py has changed since" in ended.stderr
    assert "does not agree: the verdict was rejected (crashed), it is rejected (wrong_result)" in ended.stdout


def test_wrong_is_rejected_in_words(workshop: Workshop) -> None:
    ended = workshop.run("verify", "model.py", "wrong.py", "--device", "cpu")
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout.startswith("rejected  wrong result: ")
    assert "--explain shows the evidence" in ended.stdout


def test_a_reference_without_a_module_cannot_be_judged(workshop: Workshop) -> None:
    workshop.write("model.py", "x = 1\n")
    ended = workshop.run("verify", "model.py", "right.py", "--device", "cpu", "--json")
    assert ended.returncode == 2
    verdict = json.loads(ended.stdout)
    assert (verdict["verdict"], verdict["category"]) == ("unjudgeable", "bad_reference")
