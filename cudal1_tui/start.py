"""Puts a run together from the command line: folder, archive, referee and policy."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from cudal1_core.archive import open_archive
from cudal1_core.errors import UsageError
from cudal1_core.exemplars import ExemplarOptions
from cudal1_core.paths import RunFolder, archive_path, new_run_folder
from cudal1_core.policies import WITH_ADAPTERS, WITH_MODEL, make_policy
from cudal1_core.prompt import PromptOptions
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.rounds import Run, RunOptions
from cudal1_core.templates import Templates, read_templates
from cudal1_core.updating import Updater, Updates, check_installed

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

    from cudal1_core.advice.reviewer import Reviewer
    from cudal1_core.policies.base import Policy
    from cudal1_core.recall import Recalled


@contextmanager
def prepared_run(options: argparse.Namespace) -> Iterator[Run]:
    """A run that has not begun; the archive is closed at the end. Raises UsageError."""
    settings = run_options(options)
    recalled: Recalled | None = options.recalled
    folder = RunFolder(recalled.started.run, options.folder) if recalled else new_run_folder()
    policy = policy_of(options, folder.logs)
    reviewer = reviewer_of(options)
    stored = archive_path(options.folder.parents[2]) if recalled else archive_path()
    if options.update:
        updater_of(options, folder.path, stored)  # what it lacks is told before anything starts
    archive, trouble = open_archive(stored)
    try:
        referee = Referee(settings.judge, log_dir=folder.logs)
        yield Run(
            options.module, settings, referee, policy, archive, folder,
            trouble=trouble, reviewer=reviewer, recalled=recalled,
            updater=lambda: updater_of(options, folder.path, stored),
        )  # fmt: skip
    finally:
        archive.close()


def run_options(options: argparse.Namespace, *, keep_open: bool = True) -> RunOptions:
    """Raises UsageError where the templates cannot be used."""
    return RunOptions(
        rounds=options.rounds,
        group=options.group,
        budget_s=options.budget,
        seed=options.seed,
        judge=JudgeOptions(device=options.device, model=class_name(options)),
        exemplars=ExemplarOptions(how=options.exemplars),
        prompt=PromptOptions(
            read_templates(options.templates) if options.templates else Templates(), toolkits=options.toolkits
        ),
        repair=options.repair,
        baselines=options.baselines,
        update=options.update,
        keep_open=keep_open,
        out=options.out,
    )


def policy_of(options: argparse.Namespace, log_dir: Path | None) -> Policy:
    """Raises UsageError."""
    return make_policy(
        options.policy,
        candidates=options.candidates,
        url=options.url,
        model=options.model if options.policy in WITH_MODEL else None,
        streams=options.streams,
        adapter=options.adapter,
        takes_adapters=options.update or not (options.headless or options.json),
        device=options.policy_device,
        dtype=options.dtype,
        longest=options.longest,
        log_dir=log_dir,
    )


def reviewer_of(options: argparse.Namespace) -> Reviewer | None:
    """Raises UsageError."""
    if not options.reviewer:
        return None
    from cudal1_core.advice.reviewer import Reviewer  # with httpx, which costs half as much as all the rest

    return Reviewer(options.reviewer)


def updater_of(options: argparse.Namespace, folder: Path | None, archive: Path) -> Updater:
    """Raises UsageError."""
    if options.policy not in WITH_ADAPTERS:
        raise UsageError(
            f"The {options.policy} policy has no model that could be trained",
            "",
            f"Start with --policy {' or '.join(WITH_ADAPTERS)}, with --model.",
        )
    check_installed()
    if options.class_name:
        raise UsageError("Training works on a reference whose class is Model", "", "Start without --class.")
    if folder is None:
        raise UsageError("Adapters need a folder to be kept in", "", "Start from a folder that can be written.")
    return Updater(
        Updates(
            reference=options.module,
            model=options.model,
            folder=folder,
            archive=archive,
            adapter=options.adapter,
            group=options.group,
            longest=options.longest or 2048,
            policy_device=options.policy_device,
            device=options.device,
        )
    )


def class_name(options: argparse.Namespace) -> str | None:
    """Of the reference: where the policy has a model --model is the model's, and --class the reference's."""
    with_model = options.policy in WITH_MODEL
    named: str | None = options.class_name or (None if with_model else options.model)
    return named
