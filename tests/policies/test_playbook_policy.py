"""The policy imports no torch; its child reads the reference, and the child's end is told in plain words."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from cudal1_core.candidate import Candidate, source_hash
from cudal1_core.errors import PolicyError
from cudal1_core.policies.base import Fragment, Judged, Prompt
from cudal1_core.policies.playbook import PlaybookPolicy
from cudal1_core.reference import Task
from cudal1_core.verdict import Verdict

REFERENCE = """
import torch
import torch.nn as nn

print("reading")


class Model(nn.Module):
    def forward(self, a, b):
        return torch.diag(a) @ b


def get_inputs():
    return [torch.randn(8), torch.randn(8, 8)]


def get_init_inputs():
    return []
"""


def prompt_for(path: Path, source: str, history: tuple[Judged, ...] = (), seed: int = 0) -> Prompt:
    path.write_text(source)
    task = Task(str(path), "Model", source, source_hash(source), "cpu", "a CPU", "float32", (), (), 0)
    return Prompt(task, 1, "", (), history, seed)


async def collect(policy: PlaybookPolicy, prompt: Prompt, n: int) -> list[Fragment]:
    return [fragment async for fragment in policy.generate(prompt, n)]


def code(fragment: Fragment) -> str:
    return fragment.text.split("```python\n")[1].split("```")[0]


def judged(index: int, fragment: Fragment) -> Judged:
    candidate = Candidate(
        f"c{index:02}", 1, "playbook", code(fragment), fragment.text, fragment.title, fragment.techniques
    )
    return Judged(candidate, Verdict("accepted", speedup=1.2))


def test_importing_the_policy_does_not_import_torch() -> None:
    check = "import sys, cudal1_core.policies.playbook; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_candidates_come_whole_and_the_child_serves_the_next_round(tmp_path: Path) -> None:
    async def rounds() -> None:
        policy = PlaybookPolicy(tmp_path / "log")
        try:
            first = await collect(policy, prompt_for(tmp_path / "model.py", REFERENCE), 1)
            assert [(f.index, f.done, f.title) for f in first] == [(0, True, "algebraic simplification")]
            assert first[0].techniques == ("algebraic simplification",)
            assert "a.unsqueeze(-1) * b" in code(first[0])
            child = policy._child
            history = (judged(0, first[0]),)
            second = await collect(policy, prompt_for(tmp_path / "model.py", REFERENCE, history), 9)
            assert code(first[0]) not in [code(f) for f in second]
            assert policy._child is child
        finally:
            await policy.close()
        assert b"reading" in (tmp_path / "log").read_bytes()

    asyncio.run(rounds())


def test_neighbours_of_the_reference_are_found(tmp_path: Path) -> None:
    (tmp_path / "helper_a.py").write_text("def double(x):\n    return x * 2\n")
    (tmp_path / "helper_b.py").write_text("def triple(x):\n    return x * 3\n")
    source = REFERENCE.replace(
        "import torch\n", "from helper_a import double\nfrom .helper_b import triple\nimport torch\n", 1
    )
    source = source.replace("torch.diag(a) @ b", "torch.diag(double(a)) @ triple(b)")

    async def one() -> list[Fragment]:
        policy = PlaybookPolicy()
        try:
            return await collect(policy, prompt_for(tmp_path / "model.py", source), 1)
        finally:
            await policy.close()

    found = asyncio.run(one())
    assert "from .helper_b import triple" in code(found[0])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (REFERENCE.replace("class Model(", "class Other("), "Model"),
        (REFERENCE.replace('print("reading")', "import no_such_module"), "no_such_module"),
        (REFERENCE.replace('print("reading")', "def broken(:"), "invalid syntax"),
    ],
)
def test_a_reference_that_cannot_be_read_is_named(tmp_path: Path, source: str, words: str) -> None:
    async def one() -> None:
        policy = PlaybookPolicy()
        try:
            await collect(policy, prompt_for(tmp_path / "model.py", source), 1)
        finally:
            await policy.close()

    with pytest.raises(PolicyError) as caught:
        asyncio.run(one())
    assert words in caught.value.meaning
    assert caught.value.next_step


def test_a_dead_child_is_an_error_and_the_next_ask_starts_another(tmp_path: Path) -> None:
    dying = REFERENCE.replace('print("reading")', "import os; os._exit(3)")

    async def both() -> list[Fragment]:
        policy = PlaybookPolicy(tmp_path / "log")
        try:
            with pytest.raises(PolicyError, match="ended"):
                await collect(policy, prompt_for(tmp_path / "model.py", dying), 1)
            return await collect(policy, prompt_for(tmp_path / "model.py", REFERENCE), 1)
        finally:
            await policy.close()

    assert len(asyncio.run(both())) == 1


def test_closing_ends_the_child_and_what_it_started(tmp_path: Path) -> None:
    spawning = REFERENCE.replace(
        'print("reading")',
        textwrap.dedent(f"""
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
        """),
    )

    async def one() -> int:
        policy = PlaybookPolicy()
        await collect(policy, prompt_for(tmp_path / "model.py", spawning), 1)
        assert policy._child is not None
        pid = policy._child.pid
        await policy.close()
        return pid

    pid = asyncio.run(one())
    grandchild = int((tmp_path / "pid").read_text())
    for dead in (pid, grandchild):
        assert not alive(dead)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state not in "ZX" and signal.SIGKILL not in _pending(pid)


def _pending(pid: int) -> set[int]:
    """Signals on their way to a process: one that will get SIGKILL is as good as gone."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(("SigPnd", "ShdPnd")):
            mask = int(line.split()[1], 16)
            if mask:
                return {n for n in range(1, 65) if mask >> (n - 1) & 1}
    return set()
