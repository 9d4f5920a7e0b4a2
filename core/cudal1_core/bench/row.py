"""One row of a bench: a task, a candidate and its verdict, as a line of JSON that stands by itself."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from cudal1_core.bench.suites import Source, Subject
from cudal1_core.candidate import source_hash
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.verdict import Verdict

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Row:
    """What was judged and what came of it. A task that could not be judged at all has rows too."""

    task: str  # "L2/96", or the name of the reference's file
    key: str  # of reference, candidate and options: where it is the same, nothing is judged again
    verdict: Verdict
    candidate: str = ""  # name within the task; empty where a policy wrote none
    level: int | None = None
    title: str = ""  # of the task
    policy: str = ""  # what wrote the candidate; empty: it was there
    named: tuple[str, ...] = ()  # techniques as the policy names them
    found: tuple[str, ...] = ()  # techniques seen in the candidate's source
    claimed: dict[str, float] = field(default_factory=dict)  # baseline -> speedup by whoever wrote it
    failed: str = ""  # why the referee itself gave no verdict
    seconds: float = 0.0  # from the start of reading or building to the verdict, waiting for the GPU included
    at: float = 0.0  # seconds since the epoch
    reference_hash: str = ""
    candidate_hash: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    referee: str = ""  # of the judging program's source, so that a report can say that it changed

    @property
    def device(self) -> str:
        return str(self.verdict.device.get("name", ""))

    @property
    def has_code(self) -> bool:
        return self.verdict.category != "no_code"

    @property
    def unjudged(self) -> bool:
        """No verdict on the candidate: the reference or the referee is at fault."""
        return self.verdict.verdict == "unjudgeable"

    def to_json(self) -> str:
        """One line, no newline."""
        return json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=True, allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> Row:
        """Raises ValueError for a line that is no row."""
        return cls.of(json.loads(line))

    @classmethod
    def of(cls, data: dict[str, Any]) -> Row:
        """Raises ValueError for an object that is no row."""
        try:
            data = dict(data)
            if data.pop("format") != FORMAT:
                raise ValueError("a row of another version")
            data["verdict"] = Verdict.from_json(data["verdict"])
            for name in ("named", "found"):
                data[name] = tuple(data[name])
            return cls(**data)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a row of a bench: {error}") from error


def options_facts(options: JudgeOptions) -> dict[str, Any]:
    """The options that may change a verdict; which GPU of a machine it was does not."""
    facts = asdict(options)
    facts["device"] = options.device.partition(":")[0]
    facts["expose"] = [str(path) for path in options.expose]
    return facts


def row_key(subject: Subject, source: Source, options: dict[str, Any]) -> str:
    what = "examine" if source.examine else "judge"
    return _hash(what, subject.text, helpers_text(subject), source.text, json.dumps(options, sort_keys=True))


def policy_key(subject: Subject, policy: dict[str, Any], options: dict[str, Any]) -> str:
    facts = json.dumps([policy, options], sort_keys=True)
    return _hash("policy", subject.text, helpers_text(subject), facts)


def helpers_text(subject: Subject) -> str:
    """Modules beside the reference that it imports, directly or not, so that a change of theirs counts as well."""
    if subject.path is None:
        return ""
    texts: dict[str, str] = {}
    left = [subject.text]
    while left:
        for name in _imported(left.pop()):
            path = subject.path.parent / f"{name}.py"
            if name not in texts and path.is_file() and path != subject.path:
                texts[name] = path.read_bytes().decode("utf-8", "surrogateescape")
                left.append(texts[name])
    return json.dumps(sorted(texts.items()))


@lru_cache(maxsize=1)
def referee_fingerprint() -> str:
    """Twelve hexadecimal digits of the referee's own source."""
    folder = Path(__file__).parent.parent / "referee"
    return _hash(*(file.read_text("utf-8") for file in sorted(folder.glob("*.py"))))[:12]


def _imported(source: str) -> Iterable[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return sorted(names)


def _hash(*parts: str) -> str:
    return source_hash("\0".join(parts))
