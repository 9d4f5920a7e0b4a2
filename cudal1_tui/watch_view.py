"""What a watch has seen, as frozen data, and the pure function that makes the next from an event."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cudal1_core.events import AcceptedJudged, ReferenceSeen, WatchStarted


@dataclass(frozen=True, slots=True)
class Watched:
    """The watch as the workbench shows it."""

    paths: tuple[str, ...]
    references: int
    how: str  # inotify, polling
    seen: ReferenceSeen | None = None  # the newest
    accepted: dict[str, AcceptedJudged] = field(default_factory=dict)  # files of the newest run, by path


def watched(before: Watched | None, event: WatchStarted | ReferenceSeen | AcceptedJudged) -> Watched | None:
    match event:
        case WatchStarted():
            return Watched(event.paths, event.references, event.how)
        case ReferenceSeen() if before is not None:
            return replace(before, seen=event, accepted={} if event.state == "changed" else before.accepted)
        case AcceptedJudged() if before is not None:
            return replace(before, accepted={**before.accepted, event.path: event})
    return before
