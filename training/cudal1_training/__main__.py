"""The process that trains: events on stdout, one JSON object a line; what libraries print goes to stderr.

`cudal1-tui train` starts it; with several processes torchrun does: `torchrun --nproc_per_node 2 -m cudal1_training
all --out DIR --config FILE`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from types import FrameType
from typing import BinaryIO, Literal

from cudal1_core.errors import Cudal1Error
from cudal1_core.events import RunFinished, TrainingReported, TroubleMet, to_json
from cudal1_core.referee import linux

from cudal1_training.settings import Settings, read_settings, to_toml

STAGES = ("sft", "self", "rl")


def main() -> int:
    """0 done, 2 wrong usage, 3 paused or failed, or 128 and the signal that ended it."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    parser = argparse.ArgumentParser(prog="python -m cudal1_training")
    parser.add_argument("what", choices=(*STAGES, "all", "preferences", "config"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args()
    # Before any library that reads them.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    try:
        settings = read_settings(options.config, options.set)
        if options.what == "config":
            _say(out, TrainingReported(path="", text=to_toml(settings, documented=True)))
            return 0
        if options.what == "preferences":
            return _preferences(settings, options.out, out)
        stages = STAGES if options.what == "all" else (options.what,)
        if options.dry_run:
            return _dry_run(stages, settings, options.out, out)
        return _train(stages, settings, options.out, out)
    except Cudal1Error as error:
        _say(out, TroubleMet(title=error.title, meaning=error.meaning, next_step=error.next_step))
        _say(out, RunFinished(reason="failed", best=None, best_speedup=None))
        return error.exit_status


def _train(stages: tuple[str, ...], settings: Settings, place: Path, out: BinaryIO) -> int:
    from cudal1_training import stages as playing
    from cudal1_training.folder import TrainingFolder
    from cudal1_training.telling import Teller
    from cudal1_training.watching import Stop, StoppedError
    from cudal1_training.work import rank, together

    if "RANK" in os.environ:  # torchrun starts it in a session of its own, and would leave it behind when killed
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    playing.begin(settings)
    leader = rank() == 0
    folder = TrainingFolder(place, settings, leader=leader)
    together()  # the first process has made the folder
    tell = Teller(folder.path / "events.jsonl", out if leader else None)
    stop = Stop()

    def end(number: int, frame: FrameType | None) -> None:
        if stop.number:  # asked twice: at once
            raise StoppedError
        stop.number = number
        tell.trouble("Stopping after this step", "It is kept then, and the same command goes on.")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    reason: Literal["done", "stopped", "failed"] = "failed"
    try:
        playing.train(stages, folder, tell, stop)
        reason = "done"
        return 0
    except StoppedError:
        reason = "stopped"
        return 128 + stop.number
    except Cudal1Error as error:
        tell.trouble(error.title, error.meaning, error.next_step)
        return error.exit_status
    except Exception as error:  # a library's own: said in words, with the traceback in the log
        traceback.print_exc()
        tell.trouble(
            "The training failed",
            f"{type(error).__name__}: {' '.join(str(error).split())[:400]}",
            f"What was trained is kept in {folder.path}; the same command goes on from the last checkpoint.",
        )
        return 3
    finally:
        if leader:
            folder.keep()
        tell(RunFinished(reason=reason, best=None, best_speedup=None))


def _dry_run(stages: tuple[str, ...], settings: Settings, place: Path, out: BinaryIO) -> int:
    from cudal1_training.folder import TrainingFolder
    from cudal1_training.planning import plan
    from cudal1_training.stages import judge_options, open_archive

    archive = open_archive(settings)
    with tempfile.TemporaryDirectory(prefix="cudal1-plan-") as scratch:
        kept = (place / "settings.toml").exists()
        folder = TrainingFolder(place if kept else Path(scratch) / "plan", settings)
        _say(out, TrainingReported(path="", text=plan(stages, folder, archive, judge_options(settings).device)))
    archive.close()
    return 0


def _preferences(settings: Settings, place: Path, out: BinaryIO) -> int:
    from cudal1_core.archive import Archive
    from cudal1_core.paths import archive_path

    from cudal1_training.preferences import export

    archive = Archive(Path(settings.archive) if settings.archive else archive_path())
    kto, dpo = export(archive, place)
    archive.close()
    told = f"{kto} KTO rows and {dpo} DPO rows are in {place}.\n"
    if not kto:
        told += "Decisions are made in the workbench: a accepts, x dismisses.\n"
    _say(out, TrainingReported(path=str(place), text=told))
    return 0


def _say(out: BinaryIO, event: TroubleMet | RunFinished | TrainingReported) -> None:
    out.write(to_json(event).encode() + b"\n")
    out.flush()


if __name__ == "__main__":
    sys.exit(main())
