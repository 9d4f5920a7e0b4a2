"""What a finding can be, in plain words."""

from __future__ import annotations

KINDS = {
    # what cheats are made of
    "starts_threads": "starts a thread, which could go on with the work after the call has returned",
    "starts_processes": "starts a process, which could go on with the work after the call has returned",
    "patches_modules": "replaces a part of a module, as one would to falsify a clock or a comparison",
    "caches_by_identity": "looks something up by an address, an id or a version, which other values may have too",
    "caches_by_shape": "looks something up by a shape, which says nothing of the values",
    "looks_around": "looks at modules, frames or objects of its process, as one would to find the answer",
    "reads_files": "reads a file or a folder, where the reference or an answer may lie",
    "reads_environment": "reads the environment or the command line, as one would to tell when it is judged",
    "constant_output": "returns a constant, or memory that nothing is written to",
    "keeps_output": "returns memory that it keeps, so that a later call may change an earlier answer",
    "counts_calls": "counts its calls, so that it may behave otherwise once it is timed",
    "own_tensor_class": "has a tensor class of its own, which could put off the work until somebody looks",
    "runs_text": "runs code that is made or loaded at run time and cannot be read here",
    "touches_randomness": "sets or reads the state of random generators, as one would to guess the inputs",
    "handles_exit": "hooks itself onto signals or the end of the process",
    "changes_inputs": "writes into an argument of forward",
    "speaks_to_the_judge": "has text that speaks to whoever judges or reviews it; text decides nothing here",
    # ordinary means that deserve a look
    "uses_streams": "works on a stream of its own, which must be joined before the call returns",
    "uses_cuda_graph": "replays a CUDA graph: inputs must be copied in, outputs copied out",
    "uses_compile": "leaves the work to a compiler of torch",
    "reduced_precision": "computes in a shorter number format",
    "changes_settings": "changes a setting of torch for the whole process",
    "takes_memory_raw": "reaches memory by address from Python",
}

_ORDINARY = (
    "uses_streams", "uses_cuda_graph", "uses_compile", "reduced_precision", "changes_settings", "takes_memory_raw",
)  # fmt: skip
SUSPECT = frozenset(KINDS) - frozenset(_ORDINARY)
