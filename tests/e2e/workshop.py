"""The program as a person starts it: a folder with a reference and candidates, and the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REFERENCE = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, diagonal, matrix):
        return torch.diag(diagonal) @ matrix


def get_inputs():
    return [torch.randn(256), torch.randn(256, 256)]


def get_init_inputs():
    return []
"""

_CANDIDATE = """\
{imports}
from torch import nn


class ModelNew(nn.Module):
    def forward(self, diagonal, matrix):
        {body}
"""

RIGHT = _CANDIDATE.format(imports="import torch", body="return diagonal.unsqueeze(1) * matrix")
WRONG = _CANDIDATE.format(imports="import torch", body="return matrix.clone()")
ENDLESS = _CANDIDATE.format(imports="import time", body="time.sleep(3600)")


@dataclass(frozen=True)
class Workshop:
    folder: Path

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*words), cwd=self.folder, capture_output=True, text=True, timeout=240, check=False
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command(*words), cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def stored(self) -> list[dict[str, Any]]:
        """The events of the only run."""
        (path,) = (self.folder / ".cudal1" / "runs").glob("*/events.jsonl")
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "cudal1_tui", *words]
