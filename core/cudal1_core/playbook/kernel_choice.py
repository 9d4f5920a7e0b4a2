"""Lets cuDNN measure its convolution kernels for the shapes at hand, instead of guessing."""

from __future__ import annotations

from torch import nn

from cudal1_core.playbook.technique import Draft, Finding, Stage

FULL_PRECISION = "torch.backends.cudnn.allow_tf32 = False"  # else another kernel may round where the old did not


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
        draft.rewriter.settings(line, "torch.backends.cudnn.benchmark = True", FULL_PRECISION)
        draft.rewriter.imports.append("import torch")
        return Finding(
            "cuDNN has many kernels for one convolution and picks by rule of thumb unless it is told to measure.",
            "With torch.backends.cudnn.benchmark the first call with a shape measures the kernels and later calls use "
            "the fastest. Kernels that round to TF32 are left out, so the precision is never below the reference's.",
        )


TECHNIQUE = KernelChoice()
