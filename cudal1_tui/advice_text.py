"""Advice for a person: a line, or every finding with where it stands and what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from cudal1_tui.plain import one_line

if TYPE_CHECKING:
    from cudal1_core.advice.advice import Advice, Finding, Review

HEAD = "advice, which no verdict rests on:"


def advice_lines(advice: Advice, *, explain: bool) -> list[Text]:
    """Foreign text is cleaned, never read as markup."""
    if not explain:
        told = brief(advice)
        return [Text(f"  advice: {told}; --explain tells more", style="dim")] if told else []
    found = [Text(f"  {HEAD}", style="bold")]
    found += [Text(f"  {'?' if finding.suspect else '·'} {finding_text(finding)}") for finding in advice.findings]
    found += [
        Text(f"  ? {similarity_text(one.similarity)} a known cheat: {one_line(one.kind)}. {one_line(one.why)}")
        for one in advice.similar
    ]
    if advice.review is not None:
        found.append(Text(f"  ? {review_text(advice.review)}"))
    return found if len(found) > 1 else [*found, Text("  · nothing in the source calls for a second look")]


def brief(advice: Advice) -> str:
    """What looks like a cheat, in a few words; empty where nothing does."""
    return ", ".join(label.replace("_", " ") for label in advice.labels)


def suspicions(advice: Advice) -> list[str]:
    """What looks like a cheat, a line a kind with the lines of code it stands in."""
    lines: dict[str, list[Finding]] = {}
    for finding in advice.findings:
        if finding.suspect:
            lines.setdefault(finding.kind, []).append(finding)
    told = [f"line {', '.join(str(one.line) for one in found)} {found[0].meaning}" for found in lines.values()]
    told += [f"{similarity_text(one.similarity)} a known cheat: {one_line(one.kind)}" for one in advice.similar]
    return [*told, review_text(advice.review)] if advice.review is not None else told


def finding_text(finding: Finding) -> str:
    return f"line {finding.line} {finding.meaning}: {one_line(finding.text)}"


def similarity_text(similarity: float) -> str:
    return f"{similarity:.0%} like"


def review_text(review: Review) -> str:
    name = one_line(review.model)
    if review.cheat is None:
        return f"{name} gave no opinion: {one_line(review.why)}"
    if not review.cheat:
        return f"{name} sees no cheat: {one_line(review.why)}"
    line = f", line {review.line}" if review.line is not None else ""
    return f"{name} objects ({one_line(review.kind)}{line}): {one_line(review.why)}"
