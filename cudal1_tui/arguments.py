"""The command line as data: parsers, and what each value must look like."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import NoReturn

from cudal1_core.errors import UsageError
from cudal1_core.policies import POLICIES

COMMANDS = {
    "verify": "judge one candidate against its reference",
    "bench": "judge a whole suite, and make the table",
    "doctor": "say what works on this machine and what to do about the rest",
    "keys": "list the keys of the workbench",
    "train": "train a model in CUDA-L1's three stages, with the referee's rewards",
    "models": "list what was trained, and the words that use it",
    "watch": "optimise a module whenever it is saved",
    "check": "judge every accepted file again; for CI and pre-commit",
    "history": "list runs, what they found, and what was decided",
    "resume": "go on with a run, in the workbench or headless",
    "prune": "keep .cudal1 below a size",
    "export": "write a run as a report, in Markdown and HTML",
    "serve": "open the workbench in a browser on this machine",
}


class Parser(argparse.ArgumentParser):
    """Raises UsageError where argparse would print and exit."""

    def error(self, message: str) -> NoReturn:
        usage = self.format_usage().strip()
        raise UsageError(f"{self.prog}: {message}", "", f"{usage}\n{self.prog} --help tells more.")


def run_parser() -> Parser:
    commands = "\n".join(f"  {name:<22}{text}" for name, text in COMMANDS.items())
    parser = Parser(
        prog="cudal1-tui",
        usage="cudal1-tui MODULE.py [options]\n       cudal1-tui {verify,bench,doctor,keys,train,models,...} ...",
        description="Makes a PyTorch module faster, in front of your eyes.",
        epilog=f"commands:\n{commands}\n\n`cudal1-tui COMMAND --help` tells more of each.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "module", metavar="MODULE.py", type=Path, help="file with class Model, get_inputs and get_init_inputs"
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    add_work(parser)
    screen = parser.add_argument_group("screen and output")
    add_screen(screen)
    add_out(screen)
    parser.set_defaults(recalled=None, folder=None)
    return parser


def add_work(parser: Parser) -> None:
    """What a run does, and how its candidates are judged."""
    work = parser.add_argument_group("work")
    work.add_argument("--rounds", type=count, default=3, metavar="N", help="rounds (3)")
    work.add_argument("--group", type=count, default=4, metavar="N", help="candidates a round (4)")
    work.add_argument("--budget", type=seconds, metavar="TIME", help="end after this long: 90s, 5m, 1h30m (no limit)")
    work.add_argument("--policy", choices=POLICIES, default="playbook", help="what writes candidates (playbook)")
    work.add_argument("--candidates", type=Path, metavar="PATH", help="for replay: a .py file, a folder, or JSON Lines")
    work.add_argument("--url", metavar="URL", help="for openai: the server, such as http://localhost:8000/v1")
    work.add_argument("--streams", type=count, default=8, metavar="N", help="for openai and vllm: requests at once (8)")
    work.add_argument("--adapter", type=Path, metavar="DIR", help="for transformers and vllm: a LoRA adapter")
    work.add_argument(
        "--policy-device", type=device, default="auto", metavar="DEVICE", help="where the model runs (auto)"
    )
    work.add_argument(
        "--dtype", choices=("auto", "float32", "bfloat16", "float16"), default="auto", help="of the model"
    )
    work.add_argument("--longest", type=count, metavar="N", help="tokens of an answer (2048; openai: the server's)")
    work.add_argument("--repair", type=whole, default=0, metavar="N", help="times a rejected candidate goes back (0)")
    work.add_argument(
        "--update", action="store_true", help="for transformers and vllm: a step of training before each further round"
    )
    work.add_argument("--templates", type=Path, metavar="DIR", help="prompts of your own, see docs/policies.md")
    work.add_argument(
        "--toolkits", type=toolkits, default=(), metavar="LIST", help="what candidates may use: torch,triton,cuda,..."
    )
    work.add_argument(
        "--exemplars",
        choices=("bucket", "island", "random", "none"),
        default="bucket",
        help="how earlier code is chosen for the prompt (bucket)",
    )
    work.add_argument("--seed", type=int, default=0, metavar="N", help="steers the policy, never the referee (0)")
    judging = parser.add_argument_group("judging")
    add_device_and_model(
        judging, "for openai, transformers, vllm: their model; else the class in the reference, if not Model"
    )
    judging.add_argument(
        "--class", dest="class_name", metavar="NAME", help="class in the reference, whatever the policy"
    )
    _add_reviewer(judging)
    add_baselines(judging)


def add_out(screen: argparse._ActionsContainer) -> None:
    screen.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="where the best (headless) or the accepted candidate is written",
    )
    screen.add_argument("--overwrite", action="store_true", help="let --out replace a file")


def add_screen(screen: argparse._ActionsContainer) -> None:
    screen.add_argument("--headless", action="store_true", help="no workbench: progress and a table of results")
    screen.add_argument("--json", action="store_true", help="headless; the event stream, one JSON object a line")
    screen.add_argument("--theme", metavar="NAME", help="colours of the workbench")
    screen.add_argument("--ascii", action="store_true", help="draw with ASCII alone")
    screen.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")


def verify_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui verify",
        usage="cudal1-tui verify REFERENCE.py CANDIDATE.py [options]\n"
        "       cudal1-tui verify --receipt FILE [--json] [--explain]",
        description="Judges one candidate against its reference, or the pair of a receipt again.",
        epilog="exit status: 0 accepted (a receipt: it agrees), 1 rejected (it does not), 2 cannot be judged, "
        "3 the referee itself failed",
        allow_abbrev=False,
    )
    parser.add_argument("reference", metavar="REFERENCE.py", nargs="?", type=Path, help="file with class Model")
    parser.add_argument("candidate", metavar="CANDIDATE.py", nargs="?", type=Path, help="file with class ModelNew")
    add_device_and_model(parser)
    parser.add_argument("--json", action="store_true", help="print exactly one JSON object")
    parser.add_argument("--explain", action="store_true", help="print every check with its evidence")
    _add_reviewer(parser)
    parser.add_argument(
        "--mode",
        choices=("as-built", "eval", "train"),
        default="as-built",
        help="mode both modules are put into (as-built)",
    )
    add_limits_and_allowances(parser)
    parser.add_argument(
        "--expose", type=Path, action="append", default=[], metavar="PATH", help="let the candidate read PATH"
    )
    parser.add_argument(
        "--timing",
        choices=("default", "paper"),
        default="default",
        help="paper: time for 20 minutes, as CUDA-L1's final test does",
    )
    add_baselines(parser)
    parser.add_argument(
        "--receipt", type=Path, metavar="FILE", help="keep all that was measured in FILE; alone: judge again"
    )
    return parser


def doctor_parser() -> Parser:
    parser = Parser(prog="cudal1-tui doctor", description="Says what works on this machine.", allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--timing", action="store_true", help="measure how well this machine measures; takes minutes")
    parser.add_argument("--device", type=device, default="auto", metavar="DEVICE", help="for --timing (auto)")
    parser.add_argument("--runs", type=count, default=5, metavar="N", help="for --timing: judgements a length (5)")
    return parser


def keys_parser() -> Parser:
    return Parser(prog="cudal1-tui keys", description="Lists the keys of the workbench.", allow_abbrev=False)


def export_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui export",
        description="Writes a run as report.md and report.html beside its events, or one of its candidates. "
        "Decisions as training data: cudal1-tui train preferences.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", nargs="?", help="id, folder or events.jsonl of a run (the newest)")
    parser.add_argument("--candidate", metavar="ID", help="this candidate's code, with its header where it is accepted")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write this file alone: HTML for .html, else Markdown")
    parser.add_argument("--overwrite", action="store_true", help="let --out replace a file")
    return parser


def serve_parser() -> Parser:
    parser = Parser(
        prog="cudal1-tui serve",
        usage="cudal1-tui serve [--port N] MODULE.py [options of a run]",
        description="Opens the workbench in a browser. It runs code, so it listens on this machine alone.",
        allow_abbrev=False,
    )
    parser.add_argument("--port", type=count, default=8000, metavar="N", help="port on 127.0.0.1 (8000)")
    return parser


def add_baselines(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--baselines",
        choices=("eager", "known", "all"),
        default="known",
        help="what else the reference is timed as: eager alone, with those timed before (known), or all of them now",
    )


def add_limits_and_allowances(parser: argparse._ActionsContainer) -> None:
    """How long a candidate may take, and what is accepted of it besides."""
    parser.add_argument("--timeout", type=positive, default=30.0, metavar="S", help="seconds for one call (30)")
    parser.add_argument("--build-timeout", type=positive, default=120.0, metavar="S", help="seconds to build (120)")
    parser.add_argument("--allow-precision", choices=("tf32", "bf16", "fp16"), help="accept this cheaper number format")
    parser.add_argument(
        "--allow-output-reuse", action="store_true", help="accept that a later call changes an earlier output"
    )


def add_device_and_model(
    parser: argparse._ActionsContainer, what: str = "class in the reference, if it is not Model"
) -> None:
    parser.add_argument(
        "--device", type=device, default="auto", metavar="DEVICE", help="auto, cpu, cuda or cuda:N (auto)"
    )
    parser.add_argument("--model", metavar="NAME", help=what)


def count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def whole(text: str) -> int:
    return 0 if text == "0" else count(text)


def toolkits(text: str) -> tuple[str, ...]:
    from cudal1_core.toolkits import TOOLKITS

    names = tuple(text.split(","))
    if unknown := [name for name in names if name not in TOOLKITS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(TOOLKITS)}")
    return names


def _add_reviewer(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--reviewer", metavar="URL#MODEL", help="a model's server to ask where a speedup jumps; advice, never verdict"
    )


def positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def seconds(text: str) -> float:
    """`300`, `90s`, `5m`, `1h30m`, `1.5h`."""
    match = re.fullmatch(r"(?:([\d.]+)h)?(?:([\d.]+)m)?(?:([\d.]+)s?)?", text.strip())
    try:
        hours, minutes, rest = (float(part or 0) for part in match.groups()) if match else (0.0, 0.0, 0.0)
    except ValueError:
        hours = minutes = rest = 0.0
    total = hours * 3600 + minutes * 60 + rest
    if total <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90s, 5m or 1h30m")
    return total


def device(text: str) -> str:
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not auto, cpu, cuda or cuda:N")
    return text
