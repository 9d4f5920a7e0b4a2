"""A workbench over a scripted run, with the test's own clock and folder."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cudal1_tui.app import WorkbenchApp
from cudal1_tui.session import Session
from tests.tui import recorded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cudal1_core.events import Event
    from textual.pilot import Pilot

    from cudal1_tui.view import Row, View


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Tests here may be coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Desk:
    """A workbench in front of a test."""

    app: WorkbenchApp
    pilot: Pilot[None]
    run: recorded.ScriptedRun
    session: Session
    clock: Clock
    reference: Path

    @property
    def view(self) -> View:
        return self.session.view

    @property
    def accepted_file(self) -> Path:
        return self.reference.with_name("softmax_optimized.py")

    @property
    def seen(self) -> str:
        """What the screen shows, as text."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text for strip in strips)

    @property
    def said(self) -> list[str]:
        """The notices so far."""
        return [notification.message for notification in self.app._notifications]

    def row(self, candidate: str) -> Row:
        row = self.view.row(candidate)
        assert row is not None
        return row

    async def tell(self, events: Iterable[Event]) -> None:
        """Let the run tell something, and wait until it is drawn and a moment has passed."""
        self.run.tell(events)
        await self.settle()
        self.clock.now += 1

    async def settle(self) -> None:
        while not self.run.told_all:
            await asyncio.sleep(0)
        self.app.workbench.drain()
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def select(self, candidate: str) -> None:
        self.session.select(candidate)
        self.app.workbench.draw()
        await self.pilot.pause()


Opened = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Opens a workbench of a size: `async with opened(size) as desk`."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("TMUX", raising=False)

    @asynccontextmanager
    async def open_workbench(size: tuple[int, int] = (160, 50), **options: Any) -> AsyncIterator[Desk]:
        reference = tmp_path / "softmax.py"
        reference.write_text(recorded.REFERENCE)
        run, clock = recorded.ScriptedRun(), Clock()
        session = Session(run, reference=reference, clock=clock, wall=lambda: recorded.START + 85)
        app = WorkbenchApp(run, session=session, **options)
        async with app.run_test(size=size, notifications=True) as pilot:
            await pilot.pause()
            yield Desk(app, pilot, run, session, clock, reference)
        await app.workbench.pump.stop()

    return open_workbench


@pytest.fixture(params=[(80, 24), (160, 50)], ids=["80x24", "160x50"])
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    """Both sizes that the workbench is made for."""
    value: tuple[int, int] = request.param
    return value
