"""A person's decisions as data: KTO rows of what was kept and dismissed, DPO pairs of one over the other.

A fed candidate is an exemplar, not a preference. Prompts are those that the candidates were written to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cudal1_core.archive import Archive, Decided
from cudal1_core.prompt import build_prompt

from cudal1_training.examples import answer_of, program_hash

LABELS = {"kept": True, "dismissed": False}


def export(archive: Archive, folder: Path) -> tuple[int, int]:
    """Writes kto.jsonl and dpo.jsonl, in the forms of TRL's trainers; returns how many rows each has."""
    folder.mkdir(parents=True, exist_ok=True)
    decided = [one for one in archive.decided() if one.decision in LABELS and one.judged.candidate.source]
    kto, dpo = kto_rows(decided), dpo_rows(decided)
    for name, rows in (("kto", kto), ("dpo", dpo)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return len(kto), len(dpo)


def kto_rows(decided: Iterable[Decided]) -> list[dict[str, Any]]:
    return [
        {"prompt": _asked(one), "completion": _answer(one), "label": LABELS[one.decision], **_facts(one)}
        for one in decided
    ]


def dpo_rows(decided: Sequence[Decided]) -> list[dict[str, Any]]:
    """Each kept candidate over each dismissed one of the same task, where the programs differ."""
    rows = []
    for better in decided:
        for worse in decided:
            if (better.decision, worse.decision) != ("kept", "dismissed"):
                continue
            if better.task.source_hash != worse.task.source_hash or _program(better) == _program(worse):
                continue
            facts = _facts(better)
            pair = {"chosen": _answer(better), "rejected": _answer(worse)}
            rows.append({"prompt": _asked(better), **pair, **facts})
    return rows


def _asked(one: Decided) -> list[dict[str, str]]:
    """What a language model would be asked; the playbook, which is asked nothing, has the plain prompt."""
    return [{"role": "user", "content": one.asked or build_prompt(one.task, ())}]


def _answer(one: Decided) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": answer_of(one.judged)}]


def _facts(one: Decided) -> dict[str, Any]:
    return {"task": one.task.source_hash, "policy": one.judged.candidate.policy}


def _program(one: Decided) -> str:
    return program_hash(one.judged.candidate.source)
