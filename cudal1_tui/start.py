"""Puts a run together from the command line: folder, archive, referee and policy."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from cudal1_core.archive import open_archive
from cudal1_core.exemplars import ExemplarOptions
from cudal1_core.paths import archive_path, new_run_folder
from cudal1_core.policies import WITH_MODEL, make_policy
from cudal1_core.prompt import PromptOptions
from cudal1_core.referee.host import Referee
from cudal1_core.referee.options import JudgeOptions
from cudal1_core.rounds import Run, RunOptions
from cudal1_core.templates import Templates, read_templates

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator


@contextmanager
def prepared_run(options: argparse.Namespace) -> Iterator[Run]:
    """A run that has not begun; the archive is closed at the end. Raises UsageError."""
    with_model = options.policy in WITH_MODEL  # there --model is the policy's, and --class the reference's
    class_name = options.class_name or (None if with_model else options.model)
    judging = JudgeOptions(device=options.device, model=class_name)
    run_options = RunOptions(
        rounds=options.rounds,
        group=options.group,
        budget_s=options.budget,
        seed=options.seed,
        judge=judging,
        exemplars=ExemplarOptions(how=options.exemplars),
        prompt=PromptOptions(
            read_templates(options.templates) if options.templates else Templates(), toolkits=options.toolkits
        ),
        repair=options.repair,
        baselines=options.baselines,
        keep_open=True,
        out=options.out,
    )
    folder = new_run_folder()
    policy = make_policy(
        options.policy,
        candidates=options.candidates,
        url=options.url,
        model=options.model if with_model else None,
        streams=options.streams,
        adapter=options.adapter,
        device=options.policy_device,
        dtype=options.dtype,
        longest=options.longest,
        log_dir=folder.logs,
    )
    archive, trouble = open_archive(archive_path())
    try:
        referee = Referee(judging, log_dir=folder.logs)
        yield Run(options.module, run_options, referee, policy, archive, folder, trouble=trouble)
    finally:
        archive.close()
