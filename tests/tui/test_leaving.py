"""Leaving gives the terminal back, then ends the run; a fault of the run leaves the screen standing."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from cudal1_core.errors import PolicyError, UsageError
from cudal1_core.events import BaselineTimed, TokenArrived

from cudal1_tui.app import WorkbenchApp, serve
from cudal1_tui.bridge import Pump
from cudal1_tui.later import RunLater
from tests.tui import recorded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import pytest
    from cudal1_core.events import Event

    from tests.tui.conftest import Opened


async def test_the_run_is_stopped_after_the_terminal_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    class Run(recorded.ScriptedRun):
        async def stop(self) -> None:
            order.append("run stopped")
            await super().stop()

    class App(WorkbenchApp):
        async def run_async(self, **how: object) -> None:  # type: ignore[override]
            self.call_later(self.exit)
            await super().run_async(headless=True)
            order.append("terminal back")

    run = Run()
    await serve(App(run))
    assert order == ["terminal back", "run stopped"]


async def test_a_run_that_never_ends_by_itself_is_cut_off() -> None:
    class Endless(recorded.ScriptedRun):
        async def stop(self) -> None:
            self.stopped = True  # and the stream of events stays open

    run = Endless()
    pump = Pump(run, lambda can_wait: None, lambda error: None)
    pump.start()
    await asyncio.sleep(0)
    await asyncio.wait_for(pump.stop(), 5)
    assert run.stopped


async def test_a_run_is_put_together_only_when_its_events_are_asked_for() -> None:
    made = recorded.ScriptedRun()
    released: list[str] = []

    @contextmanager
    def prepare() -> Iterator[recorded.ScriptedRun]:
        yield made
        released.append("archive")

    with RunLater(prepare) as later:
        assert (later.run, later.paused) == (None, False)
        await later.stop()
        made.tell(recorded.opening("/x/softmax.py"))
        first = await anext(aiter(later.events()))
        assert first == recorded.opening("/x/softmax.py")[0]
        later.pause()
        later.decide("c01", "fed")
        later.extend(2)
        assert later.paused
        await later.stop()
        assert released == []
    assert made.asked == [("pause",), ("c01", "fed", None), ("extend", 2)]
    assert made.stopped
    assert released == ["archive"]


async def test_a_run_that_cannot_be_put_together_ends_the_workbench_with_its_error() -> None:
    def prepare() -> AbstractContextManager[recorded.ScriptedRun]:
        raise UsageError("There is no policy 'nothing'")

    app = WorkbenchApp(RunLater(prepare))
    await asyncio.wait_for(serve(app, headless=True), 30)
    assert str(app.failure) == "There is no policy 'nothing'"


class Failing(recorded.ScriptedRun):
    async def events(self) -> AsyncIterator[Event]:
        for event in recorded.opening("/x/softmax.py"):
            yield event
        raise PolicyError("The model server is gone", "Port 8000 refuses.", "Start it again.")


async def test_a_fault_of_the_run_is_shown_as_trouble(opened: Opened) -> None:
    async with opened() as desk:
        desk.app.workbench.pump._run = Failing()
        desk.run.end()
        await desk.settle()
        desk.app.workbench.pump.start()
        await desk.settle()
        await desk.pilot.pause()
        for part in ("! The model server is gone", "Port 8000 refuses.", "→ Start it again."):
            assert part in desk.seen


def test_text_of_one_candidate_is_joined_between_facts() -> None:
    pump = Pump(recorded.ScriptedRun(), lambda can_wait: None, lambda error: None)
    fact = BaselineTimed(at=1.0, baseline="eager", ms=1.0)
    told = [("a", "1"), ("b", "x"), ("a", "2"), fact, ("a", "3"), ("b", "y"), ("b", "z")]
    for item in told:
        pump._waiting.append(item if isinstance(item, BaselineTimed) else TokenArrived(candidate=item[0], text=item[1]))
    taken = [(e.candidate, e.text) if isinstance(e, TokenArrived) else e for e in pump.take()]
    assert taken == [("a", "12"), ("b", "x"), fact, ("a", "3"), ("b", "yz")]
    assert pump.take() == []
