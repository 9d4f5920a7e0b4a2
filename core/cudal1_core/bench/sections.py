"""The parts of a report in order: headings, sentences and tables of cells, before they are Markdown or HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cudal1_core.bench.figures import FAST_P, FASTER, Figures, Outcome, Share, quantile
from cudal1_core.bench.row import Row
from cudal1_core.bench.table import WITHIN, Machine, Report, word
from cudal1_core.bench.words import DASH, interval, milliseconds, percent, times

LONGEST = 240  # characters of a reason


@dataclass(frozen=True, slots=True)
class Section:
    """Text is foreign: whoever shows it escapes it."""

    title: str
    sentences: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    words: int = 1  # leading columns that hold words; what follows are numbers, if `numbers`
    tail: int = 0  # columns behind the numbers that hold words
    numbers: bool = True

    def is_number(self, column: int) -> bool:
        return self.numbers and self.words <= column < len(self.head) - self.tail


def sections(report: Report) -> list[Section]:
    found = [_method(report), _figures("Speedups", report.groups, _SPEEDUPS)]
    found.append(_fast(report))
    if len(report.baselines) > 1:
        found.append(_figures("Against each baseline", report.baselines, _BASELINES))
    if report.agreement:
        found.append(_agreement(report))
    found += [
        _rejections(report),
        _shares("By what ran", report.wins, _WINS),
        _shares("Labels", report.labels, _LABELS),
    ]
    if report.techniques:
        found.append(_shares("Techniques in the accepted code", report.techniques, _TECHNIQUES, without=True))
    if report.named:
        found.append(_shares("Techniques as the policy names them", report.named, (), without=True))
    found += [_flawed(report), _claims(report), _tasks(report), _reasons(report), _unjudged(report), _codeless(report)]
    return [section for section in found if section.rows or section is found[0]]


_SPEEDUPS = (
    "Speedup is the reference's time over the candidate's, over accepted candidates: those that are right on every "
    "input tried, in every timed call. Slower ones count too.",
)
_BASELINES = (
    "Eager is measured in pairs with the candidate, and the others in pairs with eager: the speedup over one of "
    "them is the quotient of the two.",
)
_WINS = ("What ran in the candidate's call as its own process tells it; it decides nothing.",)
_LABELS = ("Facts that do not decide; a candidate may have several.",)
_TECHNIQUES = (
    "As read from the source: what is written there, not what made it fast. With and without are geometric means of "
    "the speedups of accepted candidates that have it and that lack it; own kernel counts those in whose call a kernel "
    "of their own was seen to run.",
)


def _method(report: Report) -> Section:
    machine = report.machine
    policies = sorted({row.policy for row in report.rows if row.policy})
    wrote = f" Candidates were written by {', '.join(policies)}." if policies else ""
    return Section("Method", (f"{_counts(report)}{wrote}", *_how(report), *_mixed(machine)))


def _counts(report: Report) -> str:
    with_code = [row for row in report.rows if row.has_code]
    accepted = sum(row.verdict.accepted for row in with_code)
    rejected = len(report.rejected)
    unjudged = len(report.unjudged)
    rest = f", {unjudged} could not be judged" if unjudged else ""
    return (
        f"{len(report.outcomes)} tasks, {len(with_code)} candidates with code: {accepted} accepted, "
        f"{rejected} rejected{rest}."
    )


def _how(report: Report) -> list[str]:
    machine, options = report.machine, next((row.options for row in report.rows if row.options), {})
    dates = machine.first if machine.first == machine.last else f"{machine.first} to {machine.last}"
    devices = ", ".join(machine.devices) or "no device"
    torch, cuda, python = (", ".join(values) or "?" for values in (machine.torch, machine.cuda, machine.python))
    lines = [
        f"Judged on {devices} with torch {torch}, CUDA {cuda}, Python {python}, {dates} (UTC).",
        "Each candidate runs frozen and sandboxed in a process of its own; the clock, the inputs and the truth are in "
        "another. Inputs are fresh and secret for every timed call, and every output of every timed call is compared "
        "with what float64 says. Speedups are medians of paired blocks with a bootstrap interval of 95 %, rounded to "
        "two decimals towards 1.",
    ]
    if options:
        budget, call, build = (options.get(name) for name in ("timing_budget_s", "timeout_s", "build_timeout_s"))
        allowed = options.get("allow_precision")
        cheaper = f"{allowed} was allowed" if allowed else "a number format cheaper than the reference's is rejected"
        lines.append(
            f"Options: at most {budget} s of timing a candidate, {call} s a call, {build} s to build; {cheaper}."
        )
    if machine.isolation:
        lines.append(f"Isolation: {', '.join(machine.isolation)}.")
    return lines


def _mixed(machine: Machine) -> list[str]:
    lines = [f"The referee's source: {', '.join(machine.referees)}."] if machine.referees else []
    for what, values in (("devices", machine.devices), ("referee sources", machine.referees)):
        if len(values) > 1:
            lines.append(f"Careful: rows of {len(values)} {what} stand in one table.")
    return lines


def _figures(title: str, lines: Sequence[Figures], sentences: tuple[str, ...]) -> Section:
    head = ("", "tasks", "accepted", "success", f"above {FASTER}x", "mean", "geomean", "max", "p75", "median", "p25")
    rows = tuple(
        (
            line.name,
            str(line.tasks),
            str(line.accepted),
            percent(line.success),
            str(line.faster),
            *(times(v) for v in (line.mean, line.geomean, line.maximum, line.p75, line.median, line.p25)),
        )
        for line in lines
    )
    return Section(title, sentences, head, rows)


def _fast(report: Report) -> Section:
    rows = tuple((line.name, *(f"{line.fast_p[p] * 100:.1f} %" for p in FAST_P)) for line in report.groups)
    return Section(
        "fast_p",
        ("Share of the tasks whose candidate is right and faster than p (KernelBench).",),
        ("", *(f"p = {p:g}" for p in FAST_P)),
        rows,
    )


def _agreement(report: Report) -> Section:
    found = report.agreement
    assert found is not None
    change = DASH if found.median_change is None else f"{found.median_change * 100:.2f} %"
    sentence = (
        f"A second run judged {found.both} of the candidates again: {found.same} got the same verdict. Of the "
        f"{found.timed} accepted twice, the speedup differs by {change} in the median; {found.within} differ by at "
        f"most {percent(WITHIN)}."
    )
    rows = found.differing or (("none", DASH, DASH),)
    return Section("Repeated", (sentence,), ("task", "first", "second"), rows, numbers=False)


def _rejections(report: Report) -> Section:
    rows = tuple((category.replace("_", " "), str(count)) for category, count in report.rejections)
    return Section("Rejected, by reason", (), ("reason", "candidates"), rows)


def _shares(title: str, lines: Sequence[Share], sentences: tuple[str, ...], *, without: bool = False) -> Section:
    more = ("without", "own kernel") if without else ()
    head = ("", "tasks", "with" if without else "geomean", "median", "max", *more)
    rows = tuple(
        (
            line.name,
            str(line.count),
            *(times(value) for value in (line.geomean, line.median, line.maximum)),
            *((times(line.without), str(line.authored)) if without else ()),
        )
        for line in lines
    )
    return Section(title, sentences, head, rows)


def _flawed(report: Report) -> Section:
    rows = tuple(
        (outcome.task, ", ".join(outcome.flaws), word(outcome.row), times(outcome.speedup)) for outcome in report.flawed
    )
    return Section(
        "Flawed tasks",
        (
            "Found by trying impostors on the reference before any candidate: where zeros, a constant, another input's "
            "answer (constant_output) or other weights' answer (weak_task) pass, a speedup says little. They are in "
            "no figure but their own.",
        ),
        ("task", "flaw", "candidate", "speedup"),
        rows,
        words=3,
    )


def _claims(report: Report) -> Section:
    apart = sorted(report.claims, key=lambda pair: -max(pair[1] / _speed(pair[0]), _speed(pair[0]) / pair[1]))
    rows = tuple(
        (outcome.task, times(claimed), times(outcome.speedup), interval(outcome.row.verdict.speedup_interval))
        for outcome, claimed in apart[:20]
    )
    sentences = (_kept_claims(report), "Those whose claimed speedup is farthest from the measured one:")
    return Section("Claimed and measured", sentences, ("task", "claimed", "measured", "interval"), rows)


def _kept_claims(report: Report) -> str:
    """How many claims hold, with what the rejected had claimed."""
    pairs = [(claimed, _speed(outcome), outcome.row.verdict.speedup_interval) for outcome, claimed in report.claims]
    kept = sum(claimed <= max(speed, span[1] if span else 0.0) for claimed, speed, span in pairs)
    claims, speeds = sorted(claim for claim, _, _ in pairs), sorted(speed for _, speed, _ in pairs)
    medians = [times(quantile(values, 0.5)) for values in (claims, speeds)]
    lost = [row.claimed["eager"] for row in report.rejected if "eager" in row.claimed]
    told = f" The {len(lost)} rejected claimed up to {times(max(lost))}." if lost else ""
    return (
        f"{len(pairs)} accepted candidates came with a claim: {medians[0]} in the median, {medians[1]} measured. "
        f"{kept} of them reach it (it is not above the interval).{told}"
    )


def _speed(outcome: Outcome) -> float:
    return outcome.speedup or 1.0


def _tasks(report: Report) -> Section:
    claims = any(row.claimed for row in report.rows)
    head = ("task", "verdict", "speedup", "interval", "reference ms", "candidate ms")
    rows = tuple(
        (
            outcome.task,
            word(outcome.row),
            times(outcome.speedup),
            interval(outcome.row.verdict.speedup_interval),
            milliseconds(outcome.row.verdict.reference_ms),
            milliseconds(outcome.row.verdict.candidate_ms),
            *((times(outcome.row.claimed.get("eager")),) if claims else ()),
            ", ".join((*filter(None, (outcome.row.verdict.win,)), *outcome.row.verdict.labels)),
        )
        for outcome in report.outcomes
    )
    return Section(
        "Every task", (), (*head, *(("claimed",) if claims else ()), "what ran, labels"), rows, words=2, tail=1
    )


def _reasons(report: Report) -> Section:
    rows = tuple((_name(row), word(row), _reason(row)) for row in report.rejected)
    return Section("Every rejected candidate", (), ("task", "category", "reason"), rows, numbers=False)


def _unjudged(report: Report) -> Section:
    rows = tuple((_name(row), word(row), _reason(row)) for row in report.unjudged)
    sentences = ("Not the candidates' fault, and in no figure.",)
    return Section("Not judged", sentences, ("task", "category", "reason"), rows, numbers=False)


def _codeless(report: Report) -> Section:
    names = ", ".join(row.task for row in report.without_code)
    rows = ((str(len(report.without_code)), names),) if names else ()
    sentences = ("They count as tasks without an accepted candidate.",)
    return Section("Without code", sentences, ("tasks", "which"), rows, numbers=False)


def _name(row: Row) -> str:
    return row.task if row.candidate in ("", "release") else f"{row.task} {row.candidate}"


def _reason(row: Row) -> str:
    text = row.failed or row.verdict.reason or ""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
