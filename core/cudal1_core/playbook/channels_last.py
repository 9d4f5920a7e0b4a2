"""Convolution stacks in channels-last memory order."""

from __future__ import annotations

import ast

from torch import nn

from cudal1_core.playbook.graphs import shape, value
from cudal1_core.playbook.kernel_choice import FULL_PRECISION
from cudal1_core.playbook.technique import Draft, Finding, Stage


class ChannelsLast:
    """Inputs are brought into channels-last order inside forward, weights once in the constructor."""

    name = "memory layout"
    stage: Stage = "layout"
    promise = 45

    def apply(self, draft: Draft) -> Finding | None:
        subject = draft.subject
        forward, whole = subject.forward(), subject.whole
        if forward is None or whole is None:
            return None
        parts = list(subject.model.modules())
        if any(_measures(part) for part in parts):
            return None  # their sums lose digits in this order
        if any(n.meta.get("op") == "view" for u in subject.units for t in u.traces for n in t.graph.nodes):
            return None  # a view needs the usual order
        flat = any(isinstance(p, (nn.Conv2d, nn.ConvTranspose2d)) for p in parts)
        deep = any(isinstance(p, (nn.Conv3d, nn.ConvTranspose3d)) for p in parts)
        rank, order = (4, "torch.channels_last") if flat else (5, "torch.channels_last_3d")
        if not (flat or deep):
            return None
        images = [
            str(n.target)
            for n in whole.graph.nodes
            if n.op == "placeholder" and value(n) is not None and len(shape(n)) == rank
        ]
        if not images:
            return None
        self._edit(draft, forward, images, order)
        return Finding(
            "Convolutions are fastest when the channels of a pixel lie next to each other; the reference "
            "keeps them "
            "a whole image apart, so the library converts or takes a slower kernel.",
            "The input is put into channels-last order once, and every following convolution, "
            "normalisation and pooling "
            "keeps it. The values and the shape stay the same; only the order in memory differs.",
        )

    def _edit(self, draft: Draft, forward: ast.FunctionDef, images: list[str], order: str) -> None:
        rewriter = draft.rewriter
        first = forward.body[0]
        docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(forward.body) > 1
        start = forward.body[1] if docstring else first
        pad = rewriter.indent(start)
        text = "\n".join(f"{pad}{name} = {name}.contiguous(memory_format={order})" for name in images)
        rewriter.insert_before(start.lineno, text)
        rewriter.imports.append("import torch")
        owner = rewriter.class_of(draft.subject.model_name)
        if draft.subject.on_cuda and owner is not None:
            rewriter.settings(min([owner.lineno, *(d.lineno for d in owner.decorator_list)]), FULL_PRECISION)
        if any(p.dim() == 9 - images_rank(order) for p in draft.subject.model.parameters()):
            return  # Module.to would reorder weights of the other rank too
        makers = [f for f in (owner.body if owner else []) if isinstance(f, ast.FunctionDef) and f.name == "__init__"]
        if makers:
            last = makers[-1].body[-1]
            me = makers[-1].args.args[0].arg
            line = rewriter.indent(makers[-1].body[0]) + f"{me}.to(memory_format={order})"
            rewriter.insert_before((last.end_lineno or last.lineno) + 1, line)


def _measures(part: nn.Module) -> bool:
    """A normalisation that takes its statistics from the data."""
    always = isinstance(part, (nn.GroupNorm, nn.LayerNorm, nn.modules.instancenorm._InstanceNorm))
    norm = isinstance(part, nn.modules.batchnorm._NormBase)
    return always or (norm and (part.training or part.running_mean is None))


def images_rank(order: str) -> int:
    return 5 if order.endswith("3d") else 4


TECHNIQUE = ChannelsLast()
