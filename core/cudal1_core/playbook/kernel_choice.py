"""Lets cuDNN measure its convolution kernels for the shapes at hand, instead of guessing."""

from __future__ import annotations

from torch import nn

from cudal1_core.playbook.technique import Draft, Finding, Stage


class KernelChoice:
    name = "convolution search"
    stage: Stage = "layout"
    promise = 55

    def apply(self, draft: Draft) -> Finding | None:
        subject = draft.subject
        kinds = (nn.modules.conv._ConvNd,)
        if not subject.on_cuda or not any(isinstance(part, kinds) for part in subject.model.modules()):
            return None
        owner = draft.rewriter.class_of(subject.model_name)
        if owner is None:
            return None
        line = min([owner.lineno, *(d.lineno for d in owner.decorator_list)])
        draft.rewriter.insert_before(line, "torch.backends.cudnn.benchmark = True\n\n")
        draft.rewriter.imports.append("import torch")
        return Finding(
            "cuDNN has many kernels for one convolution and picks by rule of thumb unless it is told to measure.",
            "With torch.backends.cudnn.benchmark the first call with a shape measures the kernels and "
            "later calls use "
            "the fastest. Precision settings are left as they are.",
        )


TECHNIQUE = KernelChoice()
