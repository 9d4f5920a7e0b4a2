"""Trouble that is not a candidate's failure: what happened, what it means, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from cudal1_tui.plain import clean, one_line

if TYPE_CHECKING:
    from cudal1_core.events import TroubleMet


class Banner(Static):
    """Hidden until there is trouble; escape puts it away."""

    def show(self, trouble: TroubleMet | None) -> None:
        self.display = trouble is not None
        if trouble is None:
            return
        lines = [
            Content.assemble((f"! {one_line(trouble.title)}", "$warning bold"), ("  esc puts this away", "$muted"))
        ]
        if trouble.meaning:
            lines.append(Content(clean(trouble.meaning).strip()))
        if trouble.next_step:
            lines.append(Content.assemble(("→ ", "$primary"), (clean(trouble.next_step).strip(), "$foreground")))
        self.update(Content("\n").join(lines))
