"""What is learned from: right programs once each, decisions as preferences, cheats as cases."""

from __future__ import annotations

from pathlib import Path

from cudal1_core.advice.case_base import CaseBase
from cudal1_core.archive import Archive
from cudal1_core.verdict import Verdict
from cudal1_training.examples import HEADING, fitting, from_archive, program_hash
from cudal1_training.preferences import dpo_rows, export, kto_rows

from tests.training.world import code, dishonest, judged, keep
from tests.unit.scripted import make_task

TASK = make_task()


def test_programs_that_read_the_same_are_one_example_and_the_fastest_come_first() -> None:
    archive = Archive()
    keep(archive, judged(code("return x + 1"), 1.2))
    keep(archive, judged('"""Other words."""\n# and a comment\n' + code("return x  +  1"), 1.4))
    keep(archive, judged(code("return 1 + x"), 2.0))
    keep(archive, judged(code("return x * 1"), 1.1))
    found = from_archive(archive, {"t": TASK}, most=2)
    assert [example.speedup for example in found] == [2.0, 1.4]
    assert all(HEADING in example.answer for example in found)
    assert TASK.source in found[0].prompt


def test_wrong_slow_loading_and_dismissed_code_is_no_example() -> None:
    archive = Archive()
    keep(archive, judged(code("return x + 1"), verdict=Verdict("rejected", category="wrong_result")))
    keep(archive, judged(code("return x + 2"), verdict=Verdict("accepted", speedup=9.0, labels=("not_drop_in",))))
    keep(archive, judged(code("return x + 3")), decision="dismissed")
    assert from_archive(archive, {"t": TASK}, most=9) == []
    keep(archive, judged(code("return x + 4")))
    keep(archive, judged(code("return x + 5")), task=make_task("class Model: other\n"))
    assert len(from_archive(archive, {"t": TASK}, most=9)) == 1


def test_a_long_example_is_left_out_and_never_cut() -> None:
    archive = Archive()
    keep(archive, judged(code("return x + 1")))
    (example,) = from_archive(archive, {"t": TASK}, most=1)
    assert fitting([example], lambda one: len(one.answer), len(example.answer)) == [example]
    assert fitting([example], lambda one: len(one.answer), len(example.answer) - 1) == []


def test_layout_changes_no_program_and_an_operator_does() -> None:
    assert program_hash("x = 1  # one\n") == program_hash("x  =  1")
    assert program_hash("def f():\n    'words'\n    return 1\n") == program_hash("def f():\n    return 1\n")
    assert program_hash("x = 1 + 2") != program_hash("x = 1 - 2")
    assert program_hash("not ( python") != program_hash("nor ( python")


def test_decisions_become_kto_rows_and_pairs(tmp_path: Path) -> None:
    archive = Archive()
    keep(archive, judged(code("return x + 1")), decision="kept", prompt="make it fast")
    keep(archive, judged(code("return x + 2")), decision="dismissed")
    keep(archive, judged(code("return x + 3")), decision="fed")
    keep(archive, judged(code("return x + 4")), decision="none")
    keep(archive, judged(code("return x + 5")), task=make_task("class Model: other\n"), decision="dismissed")
    assert export(archive, tmp_path / "out") == (3, 1)
    decided = archive.decided()
    assert [one.decision for one in decided] == ["kept", "dismissed", "fed", "dismissed"]
    kto = kto_rows([one for one in decided if one.decision != "fed"])
    assert [row["label"] for row in kto] == [True, False, False]
    assert kto[0]["prompt"] == [{"role": "user", "content": "make it fast"}]
    (pair,) = dpo_rows([one for one in decided if one.decision != "fed"])
    assert "x + 1" in pair["chosen"][0]["content"]
    assert "x + 2" in pair["rejected"][0]["content"]
    assert len((tmp_path / "out" / "kto.jsonl").read_text().splitlines()) == 3


def test_cheats_of_trainings_grow_the_case_base_of_the_archive() -> None:
    archive, base = Archive(), CaseBase()
    shipped = len(base.cases)
    caches = code("return self.cache.setdefault(x.data_ptr(), x + 1)")
    keep(archive, judged(caches, verdict=dishonest()))
    keep(archive, judged(code("return x"), verdict=Verdict("rejected", category="wrong_result")))
    for one in archive.cheats():
        base.learn(one)
    assert len(base.cases) == shipped + 1
    assert base.cases[-1].source == caches
    assert from_archive(archive, {"t": TASK}, most=9) == []
