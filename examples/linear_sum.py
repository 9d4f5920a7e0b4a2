"""A linear layer whose outputs are added up. To be gained: the matrix product folds into one vector."""

import torch
from torch import nn

BATCH = 512
IN_FEATURES = 2048
OUT_FEATURES = 2048


class Model(nn.Module):
    """Sums a linear layer over its features, then scales the sum."""

    def __init__(self, in_features, out_features, scale):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x):
        x = self.linear(x)
        x = x / 2
        x = torch.sum(x, dim=1, keepdim=True)
        return x * self.scale


def get_inputs():
    return [torch.randn(BATCH, IN_FEATURES)]


def get_init_inputs():
    return [IN_FEATURES, OUT_FEATURES, 1.5]
