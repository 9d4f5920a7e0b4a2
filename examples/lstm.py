"""An LSTM stepped by hand. To be gained: one library call or one recorded graph runs the whole sequence."""

import torch
from torch import nn

BATCH = 16
LENGTH = 64
FEATURES = 64
HIDDEN = 128


class Model(nn.Module):
    """One LSTM cell over all steps, and a linear layer on every hidden state."""

    def __init__(self, features, hidden):
        super().__init__()
        self.cell = nn.LSTMCell(features, hidden)
        self.head = nn.Linear(hidden, features)

    def forward(self, x, h, c):
        outputs = []
        for step in range(x.size(1)):
            h, c = self.cell(x[:, step], (h, c))
            outputs.append(h)
        return self.head(torch.stack(outputs, dim=1))


def get_inputs():
    return [torch.randn(BATCH, LENGTH, FEATURES), torch.randn(BATCH, HIDDEN), torch.randn(BATCH, HIDDEN)]


def get_init_inputs():
    return [FEATURES, HIDDEN]
