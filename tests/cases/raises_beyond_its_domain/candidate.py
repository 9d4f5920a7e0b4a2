import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        if bool((x < 0).any()):
            raise ValueError("negative inputs are not supported")
        return torch.sqrt(x)
