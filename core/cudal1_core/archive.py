"""The SQLite store of tasks, runs, rounds, candidates, verdicts and decisions.

Facts go in as events, as they happen; several processes may write at once (WAL, busy timeout). A store that
survives `kill -9` needs no fsync for each row: the page cache outlives the process.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import singledispatchmethod
from pathlib import Path

from cudal1_core.advice.advice import Advice
from cudal1_core.advice.case_base import CHEATS
from cudal1_core.candidate import Candidate
from cudal1_core.errors import Cudal1Error
from cudal1_core.events import (
    AdviceGiven,
    CandidateWritten,
    DecisionMade,
    Event,
    RoundFinished,
    RoundStarted,
    RunFinished,
    RunStarted,
    TaskDescribed,
    VerdictReached,
)
from cudal1_core.policies.base import Judged
from cudal1_core.reference import Task
from cudal1_core.verdict import Verdict

SCHEMA_VERSION = 5
BUSY_S = 3.0  # longest wait for another process's write

_SCHEMA = """
CREATE TABLE tasks (
    id INTEGER PRIMARY KEY, source_hash TEXT NOT NULL, model TEXT NOT NULL, device_name TEXT NOT NULL,
    path TEXT NOT NULL, seen REAL NOT NULL, json TEXT NOT NULL,
    UNIQUE (source_hash, model, device_name)
);
CREATE TABLE runs (
    id TEXT PRIMARY KEY, task INTEGER REFERENCES tasks, reference TEXT NOT NULL, policy TEXT NOT NULL,
    device TEXT NOT NULL, folder TEXT NOT NULL, started REAL NOT NULL, finished REAL, reason TEXT,
    best TEXT, best_speedup REAL
);
CREATE TABLE rounds (
    run TEXT NOT NULL REFERENCES runs, round INTEGER NOT NULL, started REAL NOT NULL, exemplars TEXT NOT NULL,
    prompt TEXT NOT NULL, finished REAL, accepted INTEGER, rejected INTEGER,
    PRIMARY KEY (run, round)
);
CREATE TABLE candidates (
    run TEXT NOT NULL REFERENCES runs, id TEXT NOT NULL, round INTEGER NOT NULL, policy TEXT NOT NULL,
    title TEXT NOT NULL, techniques TEXT NOT NULL, exemplars TEXT NOT NULL, source TEXT NOT NULL,
    source_hash TEXT NOT NULL, text TEXT NOT NULL, written REAL NOT NULL,
    prompt TEXT NOT NULL DEFAULT '', repairs TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (run, id)
);
CREATE TABLE verdicts (
    run TEXT NOT NULL, candidate TEXT NOT NULL, verdict TEXT NOT NULL, category TEXT, speedup REAL,
    drop_in INTEGER NOT NULL, seconds REAL NOT NULL, reached REAL NOT NULL, json TEXT NOT NULL,
    task INTEGER,
    PRIMARY KEY (run, candidate)
);
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL, candidate TEXT NOT NULL, decision TEXT NOT NULL, path TEXT,
    made REAL NOT NULL
);
CREATE TABLE baselines (
    key TEXT NOT NULL, name TEXT NOT NULL, ratio REAL NOT NULL, timed REAL NOT NULL,
    PRIMARY KEY (key, name)
);
CREATE TABLE advice (
    run TEXT NOT NULL, candidate TEXT NOT NULL, given REAL NOT NULL, json TEXT NOT NULL,
    PRIMARY KEY (run, candidate)
);
CREATE INDEX runs_of_task ON runs (task);
CREATE INDEX runs_by_start ON runs (started);
CREATE INDEX candidates_by_source ON candidates (source_hash);
CREATE INDEX exemplars_of_task ON verdicts (task, reached)
    WHERE verdict = 'accepted' AND drop_in AND speedup IS NOT NULL;
CREATE INDEX fastest_of_task ON verdicts (task, speedup)
    WHERE verdict = 'accepted' AND drop_in AND speedup IS NOT NULL;
CREATE INDEX decisions_of_candidate ON decisions (run, candidate, id);
"""

# What each version lacks of the next, by the version it has.
_UPDATES = {
    1: """
ALTER TABLE candidates ADD COLUMN prompt TEXT NOT NULL DEFAULT '';
ALTER TABLE candidates ADD COLUMN repairs TEXT NOT NULL DEFAULT ''
""",
    2: """
CREATE TABLE baselines (
    key TEXT NOT NULL, name TEXT NOT NULL, ratio REAL NOT NULL, timed REAL NOT NULL,
    PRIMARY KEY (key, name)
)
""",
    3: """
CREATE TABLE advice (
    run TEXT NOT NULL, candidate TEXT NOT NULL, given REAL NOT NULL, json TEXT NOT NULL,
    PRIMARY KEY (run, candidate)
)
""",
    4: """
ALTER TABLE verdicts ADD COLUMN task INTEGER;
UPDATE verdicts SET task = (SELECT task FROM runs WHERE id = run);
DROP INDEX IF EXISTS exemplars_by_speed;
CREATE INDEX runs_by_start ON runs (started);
CREATE INDEX exemplars_of_task ON verdicts (task, reached)
    WHERE verdict = 'accepted' AND drop_in AND speedup IS NOT NULL;
CREATE INDEX fastest_of_task ON verdicts (task, speedup)
    WHERE verdict = 'accepted' AND drop_in AND speedup IS NOT NULL
""",
}

_EARLIER = """
SELECT c.*, v.json AS verdict_json FROM verdicts v
JOIN candidates c ON c.run = v.run AND c.id = v.candidate
WHERE v.task = (SELECT id FROM tasks WHERE source_hash = ? AND model = ? AND device_name = ?) AND v.run <> ?
  AND v.verdict = 'accepted' AND v.drop_in AND v.speedup IS NOT NULL AND v.rowid <= ?
  AND coalesce((SELECT decision FROM decisions d WHERE d.run = c.run AND d.candidate = c.id
                ORDER BY d.id DESC LIMIT 1), 'none') <> 'dismissed'
ORDER BY v.reached DESC LIMIT ?
"""


_POOL = """
SELECT v.speedup, c.* FROM verdicts v JOIN candidates c ON c.run = v.run AND c.id = v.candidate
WHERE v.task = ? AND v.run <> ?
  AND v.verdict = 'accepted' AND v.drop_in AND v.speedup IS NOT NULL
  AND coalesce((SELECT decision FROM decisions d WHERE d.run = v.run AND d.candidate = v.candidate
                ORDER BY d.id DESC LIMIT 1), 'none') <> 'dismissed'
ORDER BY {order} DESC LIMIT ?
"""

_WHOLE = """
SELECT c.*, v.json AS verdict_json FROM verdicts v JOIN candidates c ON c.run = v.run AND c.id = v.candidate
WHERE v.run = ? AND v.candidate = ?
"""

_DECIDED = """
SELECT c.*, v.json AS verdict_json, t.json AS task_json, d.decision AS decision, o.prompt AS round_prompt
FROM decisions d
JOIN candidates c ON c.run = d.run AND c.id = d.candidate
JOIN verdicts v ON v.run = c.run AND v.candidate = c.id
JOIN runs r ON r.id = c.run JOIN tasks t ON t.id = r.task
LEFT JOIN rounds o ON o.run = c.run AND o.round = c.round
WHERE d.decision <> 'none'
  AND d.id = (SELECT max(l.id) FROM decisions l WHERE l.run = d.run AND l.candidate = d.candidate)
ORDER BY d.id
"""

_CHEATS = """
SELECT c.*, v.json AS verdict_json FROM verdicts v
JOIN candidates c ON c.run = v.run AND c.id = v.candidate
WHERE v.rowid > (SELECT coalesce(max(rowid), 0) FROM verdicts) - ?
  AND v.verdict = 'rejected' AND v.category IN ({marks})
ORDER BY v.rowid DESC
"""

NEWEST = (1 << 63) - 1  # later than every mark


@dataclass(frozen=True, slots=True)
class Decided:
    """A candidate, what a person decided of it, and the prompt of its round."""

    task: Task
    judged: Judged
    decision: str  # kept, dismissed, fed
    asked: str


class ArchiveError(Cudal1Error):
    """The archive cannot be opened or is of a newer version."""

    exit_status = 3


class Archive:
    """Opens or creates the store; without a path it lives in memory. Raises ArchiveError."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.read_only = False
        try:
            # One connection, used from the event loop's thread alone.
            self._db = sqlite3.connect(path or ":memory:", timeout=BUSY_S, isolation_level=None)
            self._db.row_factory = sqlite3.Row
            self._begin_log()
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._create()
        except sqlite3.Error as error:
            raise unusable(path, error) from error

    def _begin_log(self) -> None:
        """SQLite refuses this at once, without its busy wait, while another process makes the file."""
        last = time.monotonic() + BUSY_S
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > last:
                    raise
                time.sleep(0.02)

    def _create(self) -> None:
        """Makes the tables, or what an older version lacks of them, in one transaction; takes no lock otherwise."""
        if self._version() < SCHEMA_VERSION:
            self._db.execute("BEGIN IMMEDIATE")  # two processes may both be the first
            try:
                self._update(self._version())
                self._db.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
        if (version := self._version()) > SCHEMA_VERSION:
            self._db.close()
            raise ArchiveError(
                f"The archive {self.path} is from a newer cudal1-tui",
                f"It has version {version}; this program knows version {SCHEMA_VERSION}.",
                "Update cudal1-tui, or move the file away.",
            )

    def _version(self) -> int:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        return int(version)

    def _update(self, version: int) -> None:
        scripts = [_SCHEMA] if version == 0 else [_UPDATES[step] for step in range(version, SCHEMA_VERSION)]
        for script in scripts:
            for statement in script.split(";"):
                self._db.execute(statement)
        if scripts:
            self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @classmethod
    def for_reading(cls, path: Path) -> Archive:
        """The archive, also where neither file nor folder can be written. Raises ArchiveError."""
        try:
            return cls(path)
        except ArchiveError:
            for how in ("mode=ro", "immutable=1"):
                archive = cls.__new__(cls)
                archive.path, archive.read_only = path, True
                try:
                    archive._db = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None)
                    archive._db.row_factory = sqlite3.Row
                    if 1 <= archive._version() <= SCHEMA_VERSION:
                        return archive
                except sqlite3.Error:
                    continue
            raise

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is recorded inside is stored as a whole, or not at all. Raises sqlite3.Error."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        if self._db.in_transaction:  # a full disk has rolled it back already
            self._db.execute("ROLLBACK")

    def shrink(self) -> None:
        """Gives the space of what was deleted back to the disk. Raises sqlite3.Error."""
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._db.close()

    def record(self, run: str, event: Event, *, patient: bool = True) -> None:
        """Stores one fact; events without a table are passed over, and what is stored already stays as it is.

        Without patience it does not wait for another process's write. Raises sqlite3.Error.
        """
        if patient:
            self._record(event, run)
            return
        self._db.execute("PRAGMA busy_timeout = 0")
        try:
            self._record(event, run)
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000)}")

    @singledispatchmethod
    def _record(self, event: Event, run: str) -> None:
        pass

    @_record.register
    def _(self, event: RunStarted, run: str) -> None:
        self._insert(
            "runs",
            id=run,
            reference=event.reference,
            policy=event.policy,
            device=event.device,
            folder=event.folder,
            started=event.at,
        )

    @_record.register
    def _(self, event: TaskDescribed, run: str) -> None:
        task = event.task
        key = (task.source_hash, task.model, task.device_name)
        self._db.execute(
            "INSERT INTO tasks (source_hash, model, device_name, path, seen, json) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET path = excluded.path, seen = excluded.seen, json = excluded.json",
            (*key, task.path, event.at, json.dumps(task.to_json())),
        )
        self._db.execute(
            "UPDATE runs SET task = "
            "(SELECT id FROM tasks WHERE source_hash = ? AND model = ? AND device_name = ?) WHERE id = ?",
            (*key, run),
        )

    @_record.register
    def _(self, event: RoundStarted, run: str) -> None:
        exemplars = json.dumps(event.exemplars)
        self._insert("rounds", run=run, round=event.round, started=event.at, exemplars=exemplars, prompt=event.prompt)

    @_record.register
    def _(self, event: CandidateWritten, run: str) -> None:
        candidate = event.candidate
        self._insert(
            "candidates",
            run=run,
            id=candidate.id,
            round=candidate.round,
            policy=candidate.policy,
            title=_storable(candidate.title),
            techniques=json.dumps(candidate.techniques),
            exemplars=json.dumps(candidate.exemplars),
            source=_storable(candidate.source),
            source_hash=candidate.source_hash,
            text=_storable(candidate.text),
            written=event.at,
            prompt=_storable(candidate.prompt),
            repairs=candidate.repairs,
        )

    @_record.register
    def _(self, event: VerdictReached, run: str) -> None:
        verdict = event.verdict
        self._insert(
            "verdicts",
            run=run,
            candidate=event.candidate,
            verdict=verdict.verdict,
            category=verdict.category,
            speedup=verdict.speedup,
            drop_in="not_drop_in" not in verdict.labels,
            seconds=event.seconds,
            reached=event.at,
            json=json.dumps(verdict.to_json()),
            task=self._task_of(run),
        )

    @_record.register
    def _(self, event: AdviceGiven, run: str) -> None:
        told = _storable(json.dumps(event.advice.to_json()))
        values = (run, event.candidate, event.at, told)
        self._db.execute("INSERT OR REPLACE INTO advice VALUES (?, ?, ?, ?)", values)

    @_record.register
    def _(self, event: DecisionMade, run: str) -> None:
        self._insert(
            "decisions",
            run=run,
            candidate=event.candidate,
            decision=event.decision,
            path=event.path,
            made=event.at,
        )

    @_record.register
    def _(self, event: RoundFinished, run: str) -> None:
        self._db.execute(
            "UPDATE rounds SET finished = ?, accepted = ?, rejected = ? WHERE run = ? AND round = ?",
            (event.at, event.accepted, event.rejected, run, event.round),
        )

    @_record.register
    def _(self, event: RunFinished, run: str) -> None:
        self._db.execute(
            "UPDATE runs SET finished = ?, reason = ?, best = ?, best_speedup = ? WHERE id = ?",
            (event.at, event.reason, event.best, event.best_speedup, run),
        )

    def _task_of(self, run: str) -> int | None:
        row = self._db.execute("SELECT task FROM runs WHERE id = ?", (run,)).fetchone()
        return row["task"] if row is not None else None

    def _insert(self, table: str, **values: object) -> None:
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        self._db.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", tuple(values.values()))

    def earlier(self, task: Task, run: str, limit: int = 200, until: int = NEWEST) -> tuple[Judged, ...]:
        """What earlier runs of the same source on the same device found and nobody dismissed, newest first.

        Ids get the run in front ("20261130-221544-7f3a/c07"). `until` is a `mark` of the past. Raises sqlite3.Error.
        """
        rows = self._db.execute(_EARLIER, (task.source_hash, task.model, task.device_name, run, until, limit))
        return tuple(Judged(_candidate(row), Verdict.from_json(json.loads(row["verdict_json"]))) for row in rows)

    def baselines(self, key: str) -> dict[str, float]:
        """Eager's time over that of each baseline that was timed under this key. Raises sqlite3.Error."""
        rows = self._db.execute("SELECT name, ratio FROM baselines WHERE key = ?", (key,))
        return {row["name"]: row["ratio"] for row in rows}

    def keep_baseline(self, key: str, name: str, ratio: float) -> None:
        """Replaces what was timed before. Raises sqlite3.Error."""
        self._db.execute("INSERT OR REPLACE INTO baselines VALUES (?, ?, ?, ?)", (key, name, ratio, time.time()))

    def cheats(self, limit: int = 200, among: int = 5000) -> tuple[Judged, ...]:
        """What was rejected as a cheat among the newest verdicts of all tasks, one of each source, newest first.

        Looking no further keeps it quick in an archive of millions. Raises sqlite3.Error.
        """
        found: dict[str, Judged] = {}
        for row in self._db.execute(_CHEATS.format(marks=", ".join("?" * len(CHEATS))), (among, *sorted(CHEATS))):
            if len(found) == limit:
                break
            if row["source_hash"] not in found:
                verdict = Verdict.from_json(json.loads(row["verdict_json"]))
                found[row["source_hash"]] = Judged(_candidate(row), verdict)
        return tuple(found.values())

    def advice(self, run: str, candidate: str) -> Advice | None:
        """The newest on a candidate. Raises sqlite3.Error."""
        row = self._db.execute("SELECT json FROM advice WHERE run = ? AND candidate = ?", (run, candidate)).fetchone()
        return Advice.from_json(json.loads(row["json"])) if row else None

    def pool(self, task: Task, run: str, newest: int = 120, fastest: int = 40) -> tuple[Judged, ...]:
        """What exemplars are chosen from: the newest and the fastest that `earlier` would find, with speedups alone.

        `whole` gives those that were chosen all that their verdicts say. Raises sqlite3.Error.
        """
        key = (task.source_hash, task.model, task.device_name)
        found = self.rows("SELECT id FROM tasks WHERE source_hash = ? AND model = ? AND device_name = ?", *key)
        if not found:
            return ()
        judged: dict[str, Judged] = {}
        for order, limit in (("v.reached", newest), ("v.speedup", fastest)):
            for row in self.rows(_POOL.format(order=order), found[0]["id"], run, limit):
                id = f"{row['run']}/{row['id']}"
                if id not in judged:
                    judged[id] = Judged(_candidate(row), Verdict("accepted", speedup=row["speedup"]))
        return tuple(judged.values())

    def whole(self, chosen: Sequence[Judged]) -> tuple[Judged, ...]:
        """The same, each of an earlier run with all that its verdict says. Raises sqlite3.Error."""
        return tuple(self._whole(judged) if "/" in judged.candidate.id else judged for judged in chosen)

    def _whole(self, judged: Judged) -> Judged:
        run, _, id = judged.candidate.id.rpartition("/")
        row = self._db.execute(_WHOLE, (run, id)).fetchone()
        verdict = Verdict.from_json(json.loads(row["verdict_json"]))
        return replace(judged, candidate=_candidate(row), verdict=verdict)

    def rows(self, query: str, *values: object) -> list[sqlite3.Row]:
        """For what reads the archive in words of its own. Raises sqlite3.Error."""
        return self._db.execute(query, values).fetchall()

    def mark(self) -> int:
        """The newest verdict. Rows are only ever added, so that this number is a snapshot of what was found."""
        (newest,) = self._db.execute("SELECT coalesce(max(rowid), 0) FROM verdicts").fetchone()
        return int(newest)

    def decided(self) -> tuple[Decided, ...]:
        """Every candidate on which a person's last decision stands, in order of the decisions. Raises sqlite3.Error."""
        found = []
        for row in self._db.execute(_DECIDED):
            verdict = Verdict.from_json(json.loads(row["verdict_json"]))
            task = Task.from_json(json.loads(row["task_json"]))
            asked = row["round_prompt"] or ""
            found.append(
                Decided(task, Judged(_candidate(row), verdict, fed=row["decision"] == "fed"), row["decision"], asked)
            )
        return tuple(found)

    def run_of(self, folder: str, candidate: str) -> str | None:
        """The newest run kept in that folder that wrote a candidate of that id. Raises sqlite3.Error."""
        row = self._db.execute(
            "SELECT c.run FROM candidates c JOIN runs r ON r.id = c.run WHERE r.folder = ? AND c.id = ? "
            "ORDER BY c.written DESC LIMIT 1",
            (folder, candidate),
        ).fetchone()
        return str(row["run"]) if row else None

    def tasks(self) -> tuple[Task, ...]:
        """Every task that was ever read, oldest first. Raises sqlite3.Error."""
        return tuple(Task.from_json(json.loads(row["json"])) for row in self._db.execute("SELECT json FROM tasks"))


def is_held(error: sqlite3.Error) -> bool:
    """Whether another process's lock is the reason."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def unusable(path: Path | None, error: sqlite3.Error) -> ArchiveError:
    """What is wrong with the file, and what to do."""
    title, kept = f"The archive {path} cannot be used", "What is found is kept beside it, in runs/."
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return ArchiveError(title, f"{error}: another process holds it.", "Try again when that one has ended.")
        case sqlite3.SQLITE_FULL:
            return ArchiveError(title, f"{error}.", "Free some space, for example with `cudal1-tui prune`.")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return ArchiveError(title, f"{error}.", "Look at the permissions of the file and of its folder.")
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return ArchiveError(title, f"{error}.", f"Move the file away; a new one is made. {kept}")
    return ArchiveError(title, str(error))


def open_archive(path: Path) -> tuple[Archive, str]:
    """The archive at `path`, or one in memory with the reason why."""
    try:
        return Archive(path), ""
    except ArchiveError as error:
        return Archive(), str(error)


def _candidate(row: sqlite3.Row) -> Candidate:
    return Candidate(
        id=f"{row['run']}/{row['id']}",
        round=row["round"],
        policy=row["policy"],
        source=row["source"],
        text=row["text"],
        title=row["title"],
        techniques=tuple(json.loads(row["techniques"])),
        exemplars=tuple(json.loads(row["exemplars"])),
        prompt=row["prompt"],
        repairs=row["repairs"],
    )


def _storable(text: str) -> str:
    """SQLite takes no lone surrogates, and model text may hold any."""
    return text.encode("utf-8", "replace").decode("utf-8")
