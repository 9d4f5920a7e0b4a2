"""Records the launches of one call as a CUDA graph and replays them with a single launch."""

from __future__ import annotations

import ast

from torch import fx, nn

from cudal1_core.playbook.fusion import draws_numbers
from cudal1_core.playbook.subject import Subject
from cudal1_core.playbook.technique import Draft, Finding, Stage

HELPER = '''
class Recording:
    """One call of a function as a CUDA graph.

    Inputs are copied into buffers of the recording and outputs are cloned, so calls share no memory.
    Kernels read
    the weights when they run, so weights changed in place count at once.
    """

    def __init__(self, compute, inputs):
        self.inputs = [tensor.clone() for tensor in inputs]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                compute(*self.inputs)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.outputs = compute(*self.inputs)

    def __call__(self, inputs):
        for buffer, tensor in zip(self.inputs, inputs):
            buffer.copy_(tensor)
        self.graph.replay()
        if isinstance(self.outputs, (tuple, list)):
            return type(self.outputs)(tensor.clone() for tensor in self.outputs)
        return self.outputs.clone()
'''

FORWARD = """
def forward(self, {inputs}):
    inputs = ({inputs},)
    if torch.is_grad_enabled() or not {first}.is_cuda:
        return self.compute(*inputs)
    weights = tuple(tensor.data_ptr() for tensor in (*self.parameters(), *self.buffers()))
    key = (self.training, weights, tuple((tensor.shape, tensor.stride(), tensor.dtype) for tensor in inputs))
    recordings = self.__dict__.setdefault("recordings", {{}})
    if key not in recordings:
        recordings[key] = Recording(self.compute, inputs)
    return recordings[key](inputs)
"""


class CudaGraphs:
    name = "CUDA graphs"
    stage: Stage = "wrap"
    promise = 60

    def apply(self, draft: Draft) -> Finding | None:
        subject = draft.subject
        forward, whole = subject.forward(), subject.whole
        if not subject.on_cuda or forward is None or whole is None or not _recordable(subject):
            return None
        inputs = [str(node.target) for node in whole.graph.nodes if node.op == "placeholder"]
        if len(inputs) != len(forward.args.args) - 1 or not inputs or forward.decorator_list:
            return None
        self._edit(draft, forward, inputs)
        return Finding(
            "Every call launches its kernels one by one from Python; where kernels are short the GPU "
            "waits for the next "
            "launch most of the time.",
            "The first call with a shape is recorded as a CUDA graph, later calls replay it with a single "
            "launch. Inputs "
            "are copied in and outputs copied out, and a weight that moved to another address causes a "
            "new recording.",
        )

    def _edit(self, draft: Draft, forward: ast.FunctionDef, inputs: list[str]) -> None:
        rewriter = draft.rewriter
        line = rewriter.source.splitlines()[forward.lineno - 1]
        rewriter.replace_line(forward.lineno, line.replace("def forward", "def compute", 1))
        pad = rewriter.indent(forward)
        text = FORWARD.format(inputs=", ".join(inputs), first=inputs[0])
        block = "\n".join(pad + part if part else "" for part in text.splitlines())
        rewriter.insert_before((forward.end_lineno or 0) + 1, block)
        rewriter.helpers.append(HELPER)
        rewriter.imports.append("import torch")


def _recordable(subject: Subject) -> bool:
    """Nothing in forward depends on values, draws numbers, keeps state, or leaves the GPU."""
    if subject.why_untraced or draws_numbers(subject):
        return False
    graphs = [trace.graph for unit in subject.units for trace in unit.traces]
    if not all(unit.movable for unit in subject.units):
        return False
    for part in subject.model.modules():
        norm = isinstance(part, nn.modules.batchnorm._NormBase) and part.training and part.track_running_stats
        known = type(part).__module__.startswith("torch.nn") or type(part).__module__.startswith("cudal1_reference")
        if norm or not known or hasattr(part, "compute") or hasattr(part, "recordings"):
            return False
    names = {part.id for part in ast.walk(subject.tree) if isinstance(part, ast.Name)}
    return "Recording" not in names and all(_stays_on_gpu(graph) for graph in graphs)


def _stays_on_gpu(graph: fx.Graph) -> bool:
    leaving = {
        "tensor",
        "as_tensor",
        "from_numpy",
        "cpu",
        "cuda",
        "item",
        "nonzero",
        "unique",
        "masked_select",
    }
    return not any(node.meta.get("op") in leaving for node in graph.nodes)


TECHNIQUE = CudaGraphs()
