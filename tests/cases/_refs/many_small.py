import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        for _ in range(40):
            x = torch.tanh(x * 0.9 + 0.1)
        return x


def get_inputs():
    return [torch.rand(16, 32)]


def get_init_inputs():
    return []
