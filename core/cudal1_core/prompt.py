"""The contrastive prompt: the model sees good and less good code side by side with their measured speeds.

Its parts follow CUDA-L1 (arXiv 2507.14111, section 2.4.2): task, reference, earlier code with scores, the
three sections of the answer, requirements and restrictions. Its words are in `templates/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cudal1_core import toolkits
from cudal1_core.exemplars import eligible
from cudal1_core.policies.base import Judged
from cudal1_core.reference import Task
from cudal1_core.templates import Templates
from cudal1_core.verdict import Verdict

LONGEST_REASON = 300  # characters of why fed code was rejected
LONGEST_EVIDENCE = 4000  # characters of a reason or a check's detail that go back to the model


@dataclass(frozen=True, slots=True)
class PromptOptions:
    templates: Templates = field(default_factory=Templates)
    toolkits: tuple[str, ...] = ()  # words of toolkits.TOOLKITS; empty: what works here


def build_prompt(task: Task, exemplars: Sequence[Judged], options: PromptOptions | None = None) -> str:
    """The text for a language model. Without exemplars the reference stands alone at 1.00x."""
    options = options or PromptOptions()
    words = options.templates
    shown = [_exemplar(number, judged) for number, judged in enumerate(exemplars, start=1)]
    allowed = options.toolkits or toolkits.available(task.device)
    text = words.contrastive.substitute(
        device=task.device_name or task.device,
        facts=_facts(task),
        reference=_reference(task),
        exemplars="\n\n".join(["# Earlier code, with its measured speed", *shown, ""]) if shown else "",
        analysis=(words.compare if shown else words.first).substitute(),
        toolkits="; ".join(toolkits.TOOLKITS[name] for name in allowed),
    )
    return text + "\n"


def shorter(exemplars: Sequence[Judged]) -> list[tuple[Judged, ...]]:
    """All exemplars, then ever fewer, down to none: what the person fed stays longest, then the fastest."""
    order = sorted(exemplars, key=lambda one: (one.fed, eligible(one), one.verdict.speedup or 0.0))
    return [tuple(one for one in exemplars if one in order[gone:]) for gone in range(len(order) + 1)]


def build_repair(verdict: Verdict, templates: Templates) -> str:
    """What goes back to the model of a candidate that did not pass."""
    evidence = [verdict.reason or "No reason was given."]
    evidence += [f"{check.name}: {check.detail}" for check in verdict.checks if not check.passed and check.detail]
    text = _fenced("\n".join(dict.fromkeys(evidence))[:LONGEST_EVIDENCE], "text")
    category = (verdict.category or verdict.verdict).replace("_", " ")
    return templates.repair.substitute(category=category, evidence=text) + "\n"


def _facts(task: Task) -> str:
    facts = toolkits.device_facts(task)
    return f"The device: {task.device_name or task.device}{f' ({facts})' if facts else ''}."


def _reference(task: Task) -> str:
    facts = [f"inputs: {', '.join(task.inputs) or 'none'}", f"outputs: {', '.join(task.outputs) or 'none'}"]
    name = "" if task.model == "Model" else f" The module is `{task.model}`; call yours `ModelNew`."
    return f"{'; '.join(facts)}.{name}\n\n{_fenced(task.source)}"


def _exemplar(number: int, judged: Judged) -> str:
    title = f": {judged.candidate.title}" if judged.candidate.title else ""
    return f"## Version {number}, {_score(judged)}{title}\n\n{_fenced(judged.candidate.source)}"


def _score(judged: Judged) -> str:
    """Only code that counts carries a speedup; other code is there because the person fed it."""
    verdict = judged.verdict
    if eligible(judged):
        return f"{verdict.speedup:.2f}x"
    if verdict.accepted:
        return "right, but the reference's weights do not load" if "not_drop_in" in verdict.labels else "not timed"
    why = " ".join((verdict.reason or "").split())[:LONGEST_REASON]
    return f"no score: {(verdict.category or verdict.verdict).replace('_', ' ')}" + (f" ({why})" if why else "")


def _fenced(source: str, language: str = "python") -> str:
    mark = "```"
    while mark in source:
        mark += "`"
    return f"{mark}{language}\n{source.rstrip()}\n{mark}"
