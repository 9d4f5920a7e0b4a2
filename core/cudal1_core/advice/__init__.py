"""Advice on a candidate, read from its source. It is shown and stored; no verdict and no reward ever depends on it.

A reader of source can be fooled: by text split in two, by comments that tell it what to think, by a trick it has not
seen. So what decides is what the referee measures, and this package never imports the referee nor is imported by it.
"""

from __future__ import annotations

from cudal1_core.advice.advice import Advice
from cudal1_core.advice.case_base import CaseBase
from cudal1_core.advice.findings import findings_of


def advise(source: str, base: CaseBase) -> Advice:
    """What can be said of a source at once, without a reviewer."""
    return Advice(findings_of(source), base.similar(source))
