"""Receipts: what was judged, how, what was measured and what came of it, so that it can be judged again anywhere.

A receipt holds the sources themselves beside their hashes, so that it still speaks of the same pair when the files
have changed or are gone. What the reference reads besides Python modules is not in it.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from cudal1_core.errors import UsageError
from cudal1_core.events import PairsMeasured
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.verdict import Verdict

FORMAT = 1
NEAR = 0.02  # speedups this close agree, whatever their intervals


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was judged."""

    path: str  # absolute where it lay; of a helper module, relative to the reference's root
    sha256: str
    text: str  # bytes that are not UTF-8 as surrogates

    @classmethod
    def of(cls, path: str, content: bytes) -> Source:
        return cls(path, hashlib.sha256(content).hexdigest(), content.decode("utf-8", "surrogateescape"))

    @property
    def content(self) -> bytes:
        return self.text.encode("utf-8", "surrogateescape")

    def lies_at(self, path: Path) -> bool:
        """Whether that file is still what was judged."""
        try:
            return hashlib.sha256(path.read_bytes()).hexdigest() == self.sha256
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class Receipt:
    at: float  # seconds since the epoch
    verdict: Verdict
    reference: Source
    candidate: Source
    package: tuple[str, ...]  # folders from the root of the reference's package to it; none where it is in no package
    helpers: tuple[Source, ...]  # modules of the user that the reference imported, by their path from that root
    options: JudgeOptions
    measured: dict[str, Any]  # samples, seeds, and conditions before and after; empty where nothing was timed
    machine: str

    @classmethod
    def of(
        cls,
        files: tuple[Path, Path],
        options: JudgeOptions,
        verdict: Verdict,
        helpers: Mapping[str, bytes],
        measured: PairsMeasured | None,
    ) -> Receipt:
        """Of (reference, candidate) just judged. Raises OSError."""
        reference, candidate = (Source.of(str(path.resolve()), path.read_bytes()) for path in files)
        kept = {} if measured is None else asdict(measured)
        for name in ("at", "candidate"):
            kept.pop(name, None)
        package = _package(files[0].resolve())
        root = _root(reference, package)
        marks = [str(Path(*package[: depth + 1], "__init__.py")) for depth in range(len(package))]
        modules = {name: text for name, text in helpers.items() if (root / name).is_file()}
        modules |= {mark: (root / mark).read_bytes() for mark in marks}
        found = tuple(Source.of(name, text) for name, text in sorted(modules.items()))
        return cls(time.time(), verdict, reference, candidate, package, found, options, kept, platform.platform())

    @property
    def root(self) -> Path:
        """The folder that the paths of helper modules start from."""
        return _root(self.reference, self.package)

    def write(self, path: Path) -> None:
        """Raises OSError."""
        options: dict[str, Any] = asdict(self.options)
        options["expose"] = [str(exposed) for exposed in self.options.expose]
        data = {
            "receipt": FORMAT,
            "at": self.at,
            "verdict": self.verdict.to_json(),
            "files": {"reference": asdict(self.reference), "candidate": asdict(self.candidate)},
            "package": list(self.package),
            "helpers": [asdict(helper) for helper in self.helpers],
            "options": options,
            "measured": self.measured,
            "machine": self.machine,
        }
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def read_receipt(path: Path) -> Receipt:
    """Raises UsageError for what is no receipt of this version."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"--receipt {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"--receipt {path} is no receipt: {error}", "", _HOW) from error
    if not isinstance(data, dict) or "receipt" not in data:
        raise UsageError(f"--receipt {path} is no receipt, or one of an older version", "", _HOW)
    if data["receipt"] != FORMAT:
        raise UsageError(
            f"--receipt {path} has version {data['receipt']}; this program knows version {FORMAT}", "", _HOW
        )
    try:
        known = {field.name for field in fields(JudgeOptions)}
        options = {name: value for name, value in data["options"].items() if name in known}
        options["expose"] = tuple(Path(exposed) for exposed in options["expose"])
        return Receipt(
            at=data["at"],
            verdict=Verdict.from_json(data["verdict"]),
            reference=Source(**data["files"]["reference"]),
            candidate=Source(**data["files"]["candidate"]),
            package=tuple(data["package"]),
            helpers=tuple(Source(**helper) for helper in data["helpers"]),
            options=JudgeOptions(**options),
            measured=data["measured"],
            machine=data["machine"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"--receipt {path} is damaged: {type(error).__name__}: {error}", "", _HOW) from error


def lay_out_copy(receipt: Receipt, folder: Path) -> tuple[Path, Path]:
    """Writes the receipt's own copy of every file below `folder`; where (reference, candidate) lie. Raises OSError."""
    root = folder / "reference"
    for helper in receipt.helpers:
        target = (root / helper.path).resolve()
        if not target.is_relative_to(root.resolve()):
            raise UsageError(f"the receipt names a helper module outside its folder: {helper.path}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(helper.content)
    reference = root.joinpath(*receipt.package, Path(receipt.reference.path).name)
    candidate = folder / "candidate" / Path(receipt.candidate.path).name
    for path, source in ((reference, receipt.reference), (candidate, receipt.candidate)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.content)
    return reference, candidate


def _package(reference: Path) -> tuple[str, ...]:
    folders: list[str] = []
    folder = reference.parent
    while (folder / "__init__.py").is_file():
        folders.insert(0, folder.name)
        folder = folder.parent
    return tuple(folders)


def _root(reference: Source, package: tuple[str, ...]) -> Path:
    return Path(reference.path).parents[len(package)]


def differences(then: Verdict, now: Verdict) -> list[str]:
    """What two verdicts on the same pair do not agree in, a sentence each; empty where they agree.

    Speeds agree where their intervals overlap, or where the speedups lie within 2 % of each other. On another device
    they are not compared.
    """
    if (then.verdict, then.category) != (now.verdict, now.category):
        return [f"the verdict was {_word(then)}, it is {_word(now)}"]
    if then.device.get("name") != now.device.get("name"):
        return []
    if (then.speedup is None) != (now.speedup is None):
        return [f"the speedup was {then.speedup}, it is {now.speedup}"]
    if then.speedup is None or now.speedup is None or _overlap(then.speedup_interval, now.speedup_interval):
        return []
    if abs(now.speedup / then.speedup - 1) <= NEAR:
        return []
    return [f"the speedup was {_speed(then)}, it is {_speed(now)}"]


def _overlap(one: tuple[float, float] | None, other: tuple[float, float] | None) -> bool:
    return one is not None and other is not None and one[0] <= other[1] and other[0] <= one[1]


def _word(verdict: Verdict) -> str:
    return f"{verdict.verdict} ({verdict.category})" if verdict.category else verdict.verdict


def _speed(verdict: Verdict) -> str:
    low, high = verdict.speedup_interval or (verdict.speedup, verdict.speedup)
    return f"{verdict.speedup:.2f}x [{low:.2f}–{high:.2f}]"


_HOW = "Make one with `cudal1-tui verify REFERENCE.py CANDIDATE.py --receipt FILE`."
