"""References for the watch: none of them is ever run."""

from __future__ import annotations

REFERENCE = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x + {number}


def get_inputs():
    return [torch.randn(4)]


def get_init_inputs():
    return []
"""


def reference(number: int = 1) -> str:
    return REFERENCE.format(number=number)
