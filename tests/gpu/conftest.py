"""Skips every test of this folder, with the reason, where there is no CUDA device."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@functools.cache
def why_no_cuda() -> str:
    """Empty where CUDA works. Asked in a child, so that collecting tests never imports torch."""
    probe = "import torch; print('' if torch.cuda.is_available() else 'torch finds no CUDA device')"
    answer = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    return answer.stdout.strip() if answer.returncode == 0 else "torch cannot be imported"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mine = [item for item in items if HERE in item.path.parents]
    for item in mine:
        item.add_marker(pytest.mark.gpu)
    if mine and (reason := why_no_cuda()):
        for item in mine:
            item.add_marker(pytest.mark.skip(reason=f"needs a GPU: {reason}"))
