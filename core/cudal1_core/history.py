"""What was done before, read from the archive: runs page by page, and one run with its candidates."""

from __future__ import annotations

from dataclasses import dataclass

from cudal1_core.archive import Archive

PAGE = 50  # runs

_RUNS = """
SELECT r.id, r.reference, r.policy, r.started, r.finished, r.reason, r.best, r.best_speedup,
       coalesce(t.device_name, r.device) AS device, coalesce(t.model, '') AS model,
       (SELECT count(*) FROM candidates c WHERE c.run = r.id) AS written,
       (SELECT count(*) FROM verdicts v WHERE v.run = r.id AND v.verdict = 'accepted') AS accepted
FROM runs r LEFT JOIN tasks t ON t.id = r.task
WHERE {where} ORDER BY r.started DESC LIMIT ?
"""

_STANDING = """
SELECT d.run, d.candidate, d.decision, d.path, d.made FROM decisions d
WHERE d.run IN ({marks}) AND d.decision <> 'none'
  AND d.id = (SELECT max(l.id) FROM decisions l WHERE l.run = d.run AND l.candidate = d.candidate)
ORDER BY d.id
"""

_CANDIDATES = """
SELECT c.id, c.round, c.title, v.verdict, v.category, v.speedup, v.drop_in
FROM candidates c LEFT JOIN verdicts v ON v.run = c.run AND v.candidate = c.id
WHERE c.run = ? ORDER BY c.written, c.id
"""


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision that stands."""

    candidate: str
    decision: str  # kept, dismissed, fed
    path: str | None  # file written
    made: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run as the history tells it."""

    id: str
    reference: str  # absolute path
    model: str
    policy: str
    device: str
    started: float  # seconds since the epoch
    finished: float | None
    reason: str | None  # done, budget, stopped, failed; None where it goes on or was killed
    best: str | None
    best_speedup: float | None
    written: int
    accepted: int
    decisions: tuple[Decided, ...]


@dataclass(frozen=True, slots=True)
class PastCandidate:
    """One candidate of a run."""

    id: str
    round: int
    title: str
    verdict: str | None
    category: str | None
    speedup: float | None
    drop_in: bool


def page_of_runs(
    archive: Archive, *, before: float | None = None, reference: str | None = None, limit: int = PAGE
) -> list[PastRun]:
    """Runs that started before a time, newest first; of one reference where it is named. Raises sqlite3.Error."""
    where, values = "r.started < ?", [before if before is not None else 1e18]
    if reference is not None:
        return _runs(archive, f"{where} AND r.reference = ?", [*values, reference], limit)
    return _runs(archive, where, [*values], limit)


def one_run(archive: Archive, id: str) -> PastRun | None:
    """The run of that id, or the only one whose id begins so. Raises sqlite3.Error."""
    exact = _runs(archive, "r.id = ?", [id], 1)
    if exact:
        return exact[0]
    found = _runs(archive, "r.id >= ? AND r.id < ?", [id, f"{id}\uffff"], 2) if id else []
    return found[0] if len(found) == 1 else None


def candidates_of(archive: Archive, run: str) -> list[PastCandidate]:
    """In order of writing. Raises sqlite3.Error."""
    return [
        PastCandidate(
            row["id"], row["round"], row["title"], row["verdict"], row["category"], row["speedup"], row["drop_in"] == 1
        )
        for row in archive.rows(_CANDIDATES, run)
    ]


def _runs(archive: Archive, where: str, values: list[object], limit: int) -> list[PastRun]:
    rows = archive.rows(_RUNS.format(where=where), *values, limit)
    ids = [row["id"] for row in rows]
    standing: dict[str, list[Decided]] = {id: [] for id in ids}
    for row in archive.rows(_STANDING.format(marks=",".join("?" * len(ids))), *ids):
        standing[row["run"]].append(Decided(row["candidate"], row["decision"], row["path"], row["made"]))
    return [
        PastRun(
            row["id"], row["reference"], row["model"], row["policy"], row["device"], row["started"], row["finished"],
            row["reason"], row["best"], row["best_speedup"], row["written"], row["accepted"],
            tuple(standing[row["id"]]),
        )
        for row in rows
    ]  # fmt: skip
