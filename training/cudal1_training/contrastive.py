"""Stage three: contrastive reinforcement learning (CUDA-L1, arXiv 2507.14111, section 2.4).

GRPO, with two differences: a prompt shows earlier code with its measured speeds, drawn from the archive as it grows,
and rewards are smoothed. One step is one batch of answers: it is written, judged and learned from once.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Iterator
from typing import Any

from accelerate.utils import gather_object
from cudal1_core.errors import UsageError
from cudal1_core.events import TokenArrived
from cudal1_core.policies.base import Judged
from cudal1_core.prompt import PromptOptions
from cudal1_core.reference import Task
from cudal1_core.reward import raw_reward
from datasets import IterableDataset
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from cudal1_training import models, sft
from cudal1_training.draws import Draw, Draws
from cudal1_training.folder import PausedError
from cudal1_training.groups import Answer, Group, Groups
from cudal1_training.models import Start
from cudal1_training.rewards import Rewards
from cudal1_training.watching import Watch, newest_checkpoint
from cudal1_training.work import Work, rank, world
from cudal1_training.writing import fitting, free_memory


def run(work: Work, start: Start) -> Start:
    """Raises UsageError where no task fits the model, PausedError where rewards never differ."""
    settings, clock = work.settings.rl, time.monotonic()
    waited = work.referees.seconds
    folder = work.folder.sub("rl")
    model, tokenizer = models.load_to_train(start, work.settings.model)
    context = models.context_of(model)

    def fit(task: Task, chosen: tuple[Judged, ...]) -> tuple[tuple[Judged, ...], str] | None:
        return fitting(tokenizer, context, settings.longest, task, chosen, PromptOptions())

    tasks = {name: task for name, task in work.tasks.items() if fit(task, ()) is not None}
    if not tasks:
        raise UsageError(
            "No task fits into the model's context",
            f"It holds {context} tokens; an answer of {settings.longest} leaves no room for any prompt.",
            "Lower rl.longest, or take a model with a longer context.",
        )
    draws = Draws(
        work.folder.sub("rl", "draws"), tasks, work.archive, settings, work.settings.seed, fit, leader=rank() == 0
    )
    scorer = Scorer(work, draws, tasks)
    found = newest_checkpoint(folder)
    if found is not None:
        scorer.restore(found[1])
    if rank() == 0:
        os.environ["TENSORBOARD_LOGGING_DIR"] = str(work.folder.path / "tensorboard" / "rl")
    watch = Watch("rl", work.folder, work.tell, work.stop, models.bytes_of(model), scorer.to_json)
    trainer = GRPOTrainer(
        model=model,
        args=_config(work),
        reward_funcs=scorer.rewards,
        train_dataset=IterableDataset.from_generator(_rows, gen_kwargs={"source": _Source(draws, scorer.last + 1)}),
        processing_class=tokenizer,
        callbacks=[watch],
    )
    some = "1 task" if len(tasks) == 1 else f"{len(tasks)} tasks"
    what = f"contrastive GRPO on {some}, exemplars {settings.exemplars}"
    try:
        return sft.finish(work, trainer, folder, start, "rl", what, settings.steps)
    finally:
        judging = work.referees.seconds - waited
        work.folder.spent("rl judging", judging)
        work.folder.spent("rl training", time.monotonic() - clock - judging)


class Scorer:
    """The reward of the trainer: judges answers, keeps them, and smooths what they earned."""

    def __init__(self, work: Work, draws: Draws, tasks: dict[str, Task]) -> None:
        self.last = 0  # draw that was rewarded last
        self._work = work
        self._draws = draws
        self._tasks = tasks
        self._groups: Groups = work.groups("rl", "rl")
        self._rewards = Rewards(work.settings.rl)

    def rewards(self, completions: list[Any], draw: list[int], **kwargs: Any) -> list[float | None]:
        """One a completion of this process, in order. All processes call this at the same time."""
        start = time.monotonic()
        free_memory()
        raw = self._judge(completions, draw)
        rows = [(number, self._draws.get(number).task, reward) for number, reward in zip(draw, raw, strict=True)]
        everyone = gather_object([rows]) if world() > 1 else [rows]
        flat = [row for part in everyone for row in part]
        smoothed = self._rewards.smoothed([(task, reward) for _, task, reward in flat])
        self.last = max(number for number, _, _ in flat)
        by_draw = {number: [reward for other, _, reward in flat if other == number] for number, _, _ in flat}
        self._mind(self._rewards.watch(list(by_draw.values())))
        _tell_metrics(kwargs.get("log_metric"), [reward for _, _, reward in flat], time.monotonic() - start)
        first = sum(len(part) for part in everyone[: rank()]) if world() > 1 else 0
        return smoothed[first : first + len(rows)]

    def to_json(self) -> dict[str, Any]:
        """The draw counter, the archive's mark, and the statistics of rewards."""
        return {"draws": self.last, "mark": self._work.archive.mark(), "rewards": self._rewards.to_json()}

    def restore(self, data: dict[str, Any]) -> None:
        self.last = data["draws"]
        self._rewards.restore(data["rewards"])

    def _judge(self, completions: list[Any], numbers: list[int]) -> list[float | None]:
        asked: list[tuple[Group, list[Answer]]] = []
        for number in dict.fromkeys(numbers):
            draw = self._draws.get(number)
            group = self._group(draw)
            self._groups.begin(group)
            answers = []
            for place, completion in enumerate(completions):
                if numbers[place] == number:
                    answers.append(Answer(f"r{number}-{rank() * len(completions) + place + 1}", _text(completion)))
                    self._work.tell(TokenArrived(candidate=answers[-1].id, text=answers[-1].text))
            asked.append((group, answers))
        allow = self._work.settings.rl.allow_not_drop_in
        found: dict[int, Iterator[float | None]] = {}
        for (group, _), judged in zip(asked, self._groups.judge(asked), strict=True):
            found[group.number] = iter([raw_reward(one.verdict, allow_not_drop_in=allow) for one in judged])
        return [next(found[number]) for number in numbers]

    def _group(self, draw: Draw) -> Group:
        return Group(self._tasks[draw.task], draw.number, draw.prompt, draw.exemplars)

    def _mind(self, flat: int) -> None:
        """Raises PausedError where groups teach nothing any more."""
        patience = self._work.settings.rl.patience
        if patience and flat >= patience:
            raise PausedError(
                f"The last {flat} groups had the same reward throughout",
                "Without a difference inside a group there is nothing to learn from: mostly no answer is right.",
                "Train stages one and two first or longer, take easier tasks or a larger rl.group; "
                "with a larger rl.patience the same command goes on.",
            )


class _Source:
    """Given to the dataset, which wants to hash and copy what it is given."""

    def __init__(self, draws: Draws, first: int) -> None:
        self._draws = draws
        self.first = first

    def rows(self) -> Iterator[dict[str, Any]]:
        return self._draws.from_number(self.first)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (f"draws from {self.first}",)


def _rows(source: _Source) -> Iterator[dict[str, Any]]:
    yield from source.rows()


def _config(work: Work) -> GRPOConfig:
    settings = work.settings.rl
    batch = settings.group * settings.prompts
    micro = settings.micro_batch
    if batch % (micro * world()):
        raise UsageError(
            f"rl.group x rl.prompts = {batch} cannot be shared by {world()} processes of rl.micro_batch {micro}",
            "Every process takes the same number of answers of a step.",
            f"Choose them so that {micro * world()} divides the product.",
        )
    return GRPOConfig(
        **work.trainer(
            "rl",
            {
                "max_steps": settings.steps,
                "per_device_train_batch_size": micro,
                "gradient_accumulation_steps": batch // (micro * world()),
                "num_generations": settings.group,
                "max_completion_length": settings.longest,
                "learning_rate": settings.learning_rate,
                "lr_scheduler_type": "constant",
                "beta": settings.beta,
                "epsilon": settings.epsilon,
                "temperature": settings.temperature,
                "loss_type": "grpo",
                "scale_rewards": "group",
                "shuffle_dataset": False,
                "ignore_data_skip": True,  # the draw counter says where to go on
                "log_completions": False,
                "use_vllm": rollouts(settings.rollouts, models.device(work.settings.model)) == "vllm",
            },
        )
    )


def rollouts(wanted: str, device: str) -> str:
    """Raises UsageError where vllm is asked for and is not there."""
    there = importlib.util.find_spec("vllm") is not None
    if wanted == "vllm" and not there:
        raise UsageError("rl.rollouts is vllm, which is not installed", "", "pip install 'cudal1-tui[vllm]'")
    if wanted == "auto":
        return "vllm" if there and device == "cuda" else "transformers"
    return wanted


def _tell_metrics(log_metric: Any, rewards: list[float | None], seconds: float) -> None:
    if log_metric is None:
        return
    settled = [reward for reward in rewards if reward is not None]
    log_metric("judging_s", seconds)
    log_metric("right", sum(reward > 0 for reward in settled) / max(1, len(rewards)))
    log_metric("unscorable", 1 - len(settled) / max(1, len(rewards)))
    log_metric("speedup", sum(settled) / max(1, len(settled)))


def _text(completion: Any) -> str:
    return completion if isinstance(completion, str) else str(completion[0]["content"])
