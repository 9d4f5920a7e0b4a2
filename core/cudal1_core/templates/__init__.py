"""The words of the prompts: Markdown files with $names, which a folder of one's own may replace one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from cudal1_core.errors import UsageError

# The names that each template may use; those that it must use.
NAMES: dict[str, frozenset[str]] = {
    "contrastive": frozenset({"device", "facts", "reference", "exemplars", "analysis", "toolkits"}),
    "compare": frozenset(),
    "first": frozenset(),
    "repair": frozenset({"category", "evidence"}),
}
NEEDED: dict[str, frozenset[str]] = {
    "contrastive": frozenset({"reference", "exemplars"}),
    "repair": frozenset({"evidence"}),
}


def _ours(name: str) -> Template:
    return Template(Path(__file__).with_name(f"{name}.md").read_text("utf-8").rstrip("\n"))


@dataclass(frozen=True, slots=True)
class Templates:
    contrastive: Template = field(default_factory=lambda: _ours("contrastive"))
    compare: Template = field(default_factory=lambda: _ours("compare"))
    first: Template = field(default_factory=lambda: _ours("first"))
    repair: Template = field(default_factory=lambda: _ours("repair"))


def read_templates(folder: Path) -> Templates:
    """What the folder holds in place of ours, which stay for the rest. Raises UsageError with file and line."""
    try:
        found = {name: folder / f"{name}.md" for name in NAMES if (folder / f"{name}.md").is_file()}
        texts = {name: path.read_text("utf-8").rstrip("\n") for name, path in found.items()}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--templates {folder} cannot be read", str(error)) from error
    if not texts:
        known = ", ".join(f"{name}.md" for name in NAMES)
        raise UsageError(f"--templates {folder} holds no template", f"It may hold {known}.", "See docs/policies.md.")
    for name, text in texts.items():
        _check(found[name], text, NAMES[name], NEEDED.get(name, frozenset()))
    return Templates(**{name: Template(text) for name, text in texts.items()})


def _check(path: Path, text: str, known: frozenset[str], needed: frozenset[str]) -> None:
    used = set()
    for match in Template.pattern.finditer(text):
        place = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
        if match["escaped"] is not None:
            continue
        name = match["named"] or match["braced"]
        if name is None:
            raise UsageError(f"{place}: a lone $", "$ begins a name here.", "Write $$ for the sign itself.")
        if name not in known:
            names = ", ".join(f"${one}" for one in sorted(known)) or "none"
            raise UsageError(f"{place}: ${name} is not known", f"Names of this template: {names}.")
        used.add(name)
    if needed - used:
        raise UsageError(
            f"{path}: {', '.join(f'${one}' for one in sorted(needed - used))} is missing", "It must say it."
        )
