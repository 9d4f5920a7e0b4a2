"""torch.compile joins neighbouring steps into generated kernels."""

from __future__ import annotations

import importlib.util
import os
import shutil

from torch import nn

from cudal1_core.playbook.subject import Subject
from cudal1_core.playbook.technique import Draft, Finding, Stage

MOST_SEARCHED = 80  # steps; measuring kernels for more takes minutes


def compiler_found(subject: Subject) -> bool:
    """Generated code needs a C++ compiler on a CPU, Triton and a C compiler on a GPU."""
    names = [os.environ.get("CXX") or os.environ.get("CC") or "", "g++", "c++", "clang++", "gcc"]
    compiler = any(name and shutil.which(name) for name in names)
    return compiler and (not subject.on_cuda or importlib.util.find_spec("triton") is not None)


def draws_numbers(subject: Subject) -> bool:
    """Random numbers are, or may be, drawn in forward."""
    if subject.whole is None or subject.why_untraced:
        return True
    dropouts = (nn.modules.dropout._DropoutNd, nn.RNNBase, nn.MultiheadAttention, nn.RReLU, nn.Transformer)
    for part in subject.model.modules():
        chance = getattr(part, "p", getattr(part, "dropout", 0.0))
        if isinstance(part, dropouts) and part.training and chance:
            return True
    own = (trace.graph.nodes for unit in subject.units for trace in unit.traces)
    return any(node.op == "call_function" and node.meta.get("keep") for nodes in own for node in nodes)


class Fusion:
    """Decorates `forward` with torch.compile; `search` also lets it measure several kernels a step."""

    stage: Stage = "wrap"

    def __init__(self, name: str, promise: int, search: bool) -> None:
        self.name, self.promise, self.search = name, promise, search

    def apply(self, draft: Draft) -> Finding | None:
        subject = draft.subject
        forward = subject.forward()
        if forward is None or not compiler_found(subject) or (self.search and not subject.on_cuda):
            return None
        if self.search and (subject.whole is None or len(subject.whole.graph.nodes) > MOST_SEARCHED):
            return None
        if self.search and _has_convolutions(subject):
            return None  # some of the kernels measured would round to TF32 where the reference's does not
        recurrent = any(isinstance(part, nn.RNNBase) for part in subject.model.modules())
        if recurrent or _has_opaque_parts(subject):
            return None
        line = min([forward.lineno, *(d.lineno for d in forward.decorator_list)])
        draft.rewriter.insert_before(
            line, draft.rewriter.indent(forward) + f"@torch.compile({self._settings(subject)})"
        )
        draft.rewriter.imports.append("import torch")
        searched = " Several kernels are measured for each product and convolution." if self.search else ""
        return Finding(
            "Run step by step, every operation writes its whole result to memory and the next one reads "
            "it back; small "
            "steps also each pay for a launch from Python.",
            "torch.compile generates kernels in which neighbouring steps keep their values in registers. "
            "The source of "
            f"forward stays as it is; compiling happens in the first call.{searched} The precision stays "
            f"the reference's.",
        )

    def _settings(self, subject: Subject) -> str:
        settings = ["fullgraph=True"] if subject.whole is not None else []
        settings.append("dynamic=False")
        options = {"max_autotune": True} if self.search else {}
        if subject.on_cuda and _has_convolutions(subject):
            options["layout_optimization"] = False  # another order may bring a kernel that rounds to TF32
        if draws_numbers(subject):
            options["fallback_random"] = True  # the same random numbers as the reference
        if options:
            settings.append(f"options={options}")
        return ", ".join(settings)


def _has_convolutions(subject: Subject) -> bool:
    if any(isinstance(part, nn.modules.conv._ConvNd) for part in subject.model.modules()):
        return True
    nodes = (node for unit in subject.units for trace in unit.traces for node in trace.graph.nodes)
    return any(str(node.meta.get("op", "")).startswith("conv") for node in nodes)


def _has_opaque_parts(subject: Subject) -> bool:
    """Script modules cannot be compiled again."""
    return any(type(part).__module__.startswith("torch.jit") for part in subject.model.modules())


FUSION = Fusion("operation fusion", 90, search=False)
SEARCHED_FUSION = Fusion("searched fusion", 50, search=True)
