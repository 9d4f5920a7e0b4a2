"""A diagonal matrix times a matrix. To be gained: nearly all, for most products are with zero."""

import torch
from torch import nn

ROWS = 2048
COLUMNS = 512


class Model(nn.Module):
    """Scales the rows of B by the entries of A, by way of a full matrix product."""

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.diag(A) @ B


def get_inputs():
    return [torch.randn(ROWS), torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
