"""Tasks, candidates and an archive as trainings find them, without processes."""

from __future__ import annotations

import itertools

from cudal1_core.archive import Archive
from cudal1_core.candidate import Candidate
from cudal1_core.events import CandidateWritten, DecisionMade, RoundStarted, RunStarted, TaskDescribed, VerdictReached
from cudal1_core.policies.base import Judged
from cudal1_core.reference import Task
from cudal1_core.verdict import Check, Verdict

from tests.unit.scripted import make_task

_COUNT = itertools.count(1)


def code(body: str) -> str:
    return f"import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        {body}\n"


def judged(source: str, speedup: float = 1.5, verdict: Verdict | None = None, text: str = "") -> Judged:
    accepted = Verdict("accepted", speedup=speedup, speedup_interval=(speedup, speedup))
    return Judged(Candidate("c1", 1, "test", source, text or source), verdict or accepted)


def dishonest(reason: str = "the clock was moved") -> Verdict:
    return Verdict("rejected", category="dishonest", reason=reason, checks=(Check("clock", False, "moved"),))


def keep(archive: Archive, one: Judged, task: Task | None = None, decision: str = "", prompt: str = "") -> str:
    """Puts a candidate into the archive, in a run of its own; returns its id there."""
    task, run = task or make_task(), f"run{next(_COUNT)}"
    started = RunStarted(
        run=run, reference=task.path, policy="test", device="cpu", rounds=1, group=1, budget_s=None, folder=""
    )
    for event in (started, TaskDescribed(task=task), RoundStarted(round=1, exemplars=(), prompt=prompt)):
        archive.record(run, event)
    archive.record(run, CandidateWritten(candidate=one.candidate))
    archive.record(run, VerdictReached(candidate=one.candidate.id, verdict=one.verdict, seconds=0.0))
    if decision:
        archive.record(run, DecisionMade(candidate=one.candidate.id, decision=decision))  # type: ignore[arg-type]
    return f"{run}/{one.candidate.id}"
