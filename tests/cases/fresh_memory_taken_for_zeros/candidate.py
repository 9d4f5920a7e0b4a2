import torch, torch.nn as nn
class ModelNew(nn.Module):
    def forward(self, x):
        z = torch.empty_like(x)
        return torch.relu(x).sum(0) + z
