"""What each state of the workbench looks like, as SVG: `pytest tests/tui/test_snapshots.py --snapshot-update` after a
change that was meant, and look at what changed in `__snapshots__`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cudal1_core.config import Settings
from cudal1_core.events import DecisionMade, MachineSampled, TroubleMet
from syrupy.extensions.image import SVGImageSnapshotExtension

from cudal1_tui.screens.workbench import WorkbenchScreen
from tests.tui import recorded
from tests.tui.locked import same_drawing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cudal1_core.events import Event
    from syrupy.assertion import SnapshotAssertion

    from tests.tui.conftest import Opened

pytestmark = same_drawing

PATH = "/home/me/softmax.py"
MIDDLE = recorded.middle(PATH)
END = [*MIDDLE, *recorded.rest()]
GPU = MachineSampled(gpu="NVIDIA H200", use=87, used_gb=41, total_gb=141, celsius=64, foreign=2)
DISK = TroubleMet(
    title="The disk is full",
    meaning="Nothing more is stored; what is found from now on is kept in memory.",
    next_step="Free some space; e writes a report of what there is.",
)
KEPT = DecisionMade(at=recorded.START + 102, candidate="c03", decision="kept", path="/home/me/softmax_optimized.py")
FED = DecisionMade(at=recorded.START + 101, candidate="c05", decision="fed")

STATES: dict[str, tuple[Sequence[Event], str | None, tuple[str, ...]]] = {  # events, selected candidate, keys
    "start": ((), None, ()),
    "reading": (MIDDLE[:1], None, ()),
    "writing": (MIDDLE, None, ()),
    "best": (MIDDLE, "c03", ()),
    "rejected": (MIDDLE, "c05", ()),
    "tampering": (MIDDLE, "c07", ()),
    "diff": (MIDDLE, "c03", ("d",)),
    "evidence": (MIDDLE, "c03", ("3",)),
    "progress": (END, "c03", ("4",)),
    "decisions": ([*END, FED, KEPT], "c03", ("6",)),
    "done": ([*END, KEPT], "c10", ()),
    "trouble": ([*MIDDLE, GPU, DISK], "c03", ()),
    "help": (MIDDLE, "c03", ("question_mark",)),
    "quitting": (MIDDLE, "c03", ("q",)),
}


@pytest.fixture
def picture(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """One picture a file."""
    return snapshot.use_extension(SVGImageSnapshotExtension)


@pytest.fixture(autouse=True)
def same_everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever this machine's time zone, load and wishes about colour are."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(WorkbenchScreen, "_watch_machine", lambda self: None)  # of the machine the tests run on
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("state", STATES)
async def test_state(opened: Opened, size: tuple[int, int], state: str, picture: SnapshotAssertion) -> None:
    assert await drawn(opened, size, state) == picture


@pytest.mark.parametrize("theme", ["cudal1-light", "cudal1-contrast", "cudal1-ember"])
async def test_theme(opened: Opened, theme: str, picture: SnapshotAssertion) -> None:
    assert await drawn(opened, (120, 35), "best", theme=theme) == picture


async def test_ascii(opened: Opened, picture: SnapshotAssertion) -> None:
    assert await drawn(opened, (120, 45), "best", settings=Settings(ascii=True)) == picture


async def drawn(opened: Opened, size: tuple[int, int], state: str, **options: object) -> str:
    """The state as SVG once nothing moves any more; the reference is named as in the recording, no notice is told."""
    events, selected, keys = STATES[state]
    async with opened(size, **options) as desk:
        desk.app.notify = lambda *words, **how: None  # type: ignore[method-assign]
        desk.session.view = replace(desk.view, reference=PATH)
        await desk.tell(events)
        if selected:
            await desk.select(selected)
        await desk.press(*keys)
        shown = ""
        while shown != (again := desk.app.export_screenshot(title=state, simplify=True)):
            shown = again
            await desk.pilot.pause(0.1)
        return shown
