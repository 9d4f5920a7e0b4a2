"""Static findings: patterns in a candidate's syntax tree, and in the native code of its strings.

Names are followed through imports and their aliases, not through data: text that hides from this is easily written,
which is why it is advice.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from cudal1_core.advice.advice import Finding
from cudal1_core.advice.forward import in_forward
from cudal1_core.syntax import dotted, last_name, native_texts, parse

LONGEST_TEXT = 160  # characters of a line that are kept
MOST_LINES = 3  # findings of one kind

# Called or named, by the dotted name after imports are followed; a dot at the end stands for all that is below.
_NAMES = {
    "starts_threads": (
        "threading.Thread", "threading.Timer", "_thread.", "concurrent.futures.ThreadPoolExecutor",
        "multiprocessing.pool.ThreadPool",
    ),
    "starts_processes": (
        "subprocess.", "os.fork", "os.forkpty", "os.system", "os.popen", "os.posix_spawn", "os.spawn",
        "multiprocessing.", "concurrent.futures.ProcessPoolExecutor", "torch.multiprocessing.", "pty.",
    ),
    "looks_around": (
        "sys.modules", "sys._getframe", "sys._current_frames", "sys.settrace", "sys.setprofile", "inspect.", "gc.",
        "__main__.", "builtins.", "tracemalloc.",
    ),
    "reads_environment": ("os.environ", "os.getenv", "os.getppid", "sys.argv", "sys.orig_argv"),
    "reads_files": (
        "open", "io.open", "os.open", "os.listdir", "os.scandir", "os.walk", "glob.", "pathlib.", "shutil.",
        "numpy.load", "torch.load", "pickle.load", "mmap.", "tempfile.", "linecache.", "os.path.exists",
    ),
    "runs_text": (
        "exec", "eval", "compile", "__import__", "importlib.", "runpy.", "marshal.", "base64.", "types.CodeType",
        "types.FunctionType", "pickle.loads", "zlib.decompress",
    ),
    "touches_randomness": (
        "torch.manual_seed", "torch.seed", "torch.initial_seed", "torch.get_rng_state", "torch.set_rng_state",
        "torch.random.", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.cuda.get_rng_state",
        "torch.cuda.set_rng_state", "random.seed", "numpy.random.seed",
    ),
    "handles_exit": ("atexit.", "signal.", "os._exit", "sys.exit", "os.kill", "os.abort", "faulthandler."),
    "uses_streams": ("torch.cuda.Stream", "torch.cuda.stream", "torch.cuda.set_stream", "torch.cuda.ExternalStream"),
    "uses_cuda_graph": ("torch.cuda.CUDAGraph", "torch.cuda.graph", "torch.cuda.make_graphed_callables"),
    "uses_compile": ("torch.compile", "torch.jit.", "torch._dynamo.", "torch._inductor."),
    "reduced_precision": (
        "torch.autocast", "torch.cuda.amp.", "torch.amp.", "torch.float16", "torch.half", "torch.bfloat16",
        "torch.float8_e4m3fn", "torch.float8_e5m2",
    ),
    "changes_settings": (
        "torch.set_float32_matmul_precision", "torch.set_num_threads", "torch.set_num_interop_threads",
        "torch.set_default_dtype", "torch.set_default_device", "torch.set_grad_enabled", "torch.set_flush_denormal",
        "torch.use_deterministic_algorithms",
    ),
    "takes_memory_raw": (
        "ctypes.memmove", "ctypes.memset", "ctypes.string_at", "ctypes.from_address", "ctypes.cast",
        "torch.frombuffer", "ctypes.CDLL",
    ),
}  # fmt: skip
_METHODS = {  # called on anything
    "half": "reduced_precision",
    "bfloat16": "reduced_precision",
    "_make_subclass": "own_tensor_class",
    "pthread_create": "starts_threads",
}
_TENSOR = ("torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter")
_FROM_FILES = re.compile(r"^/(?:proc|dev|sys|tmp|home|root|etc)\b")
_NATIVE = {
    "starts_threads": r"std::thread|std::async|pthread_create|cudaLaunchHostFunc|cudaStreamAddCallback",
    "starts_processes": r"\b(?:fork|execve?|posix_spawn|popen|system)\s*\(",
    "reads_environment": r"\b(?:secure_)?getenv\s*\(",
    "reads_files": r"\b(?:fopen|std::ifstream|mmap|process_vm_readv)\b",
    "handles_exit": r"\b(?:sigaction|signal|atexit|_exit|kill)\s*\(",
    "uses_streams": r"cudaStreamCreate|getStreamFromPool|cuStreamCreate",
    "uses_cuda_graph": r"cudaGraphLaunch|cudaStreamBeginCapture",
    "caches_by_identity": r"(?:\[|find\(|count\(|==)\s*\w+\.data_ptr(?:<[^>]*>)?\(\)",
    "keeps_output": r"\bstatic\s+(?:thread_local\s+)?(?:torch|at)::Tensor\b",
    "reduced_precision": r"\b__half2?\b|\b__nv_bfloat16\b|\bat::Half\b|\bfloat2half\b",
    "looks_around": r"\bdl(?:sym|open)\s*\(|PyEval_|PyGILState_|Py_AddPendingCall",
}  # fmt: skip
_NATIVE_RES = {kind: re.compile(pattern) for kind, pattern in _NATIVE.items()}
_JUDGE = re.compile(
    r"\b(?:reviewer|evaluator|grader|judge|referee)s?\b|\bverdict\b|^\s*(?:#\s*)?system\s*:|"
    r"ignore (?:all |the )?(?:previous|above)",
    re.IGNORECASE,
)  # fmt: skip


def findings_of(source: str) -> tuple[Finding, ...]:
    """In order of lines, at most three of a kind. Empty for what is not Python."""
    tree = parse(source)
    if tree is None:
        return ()
    lines = source.splitlines()
    found: dict[str, set[int]] = {}
    for kind, line in (*_in_tree(tree), *_in_native(tree), *in_forward(tree), *_in_text(tree, lines)):
        found.setdefault(kind, set()).add(line)
    told = [(line, kind) for kind, where in found.items() for line in sorted(where)[:MOST_LINES]]
    return tuple(Finding(kind, line, _line(lines, line)) for line, kind in sorted(told))


def _in_tree(tree: ast.Module) -> Iterator[tuple[str, int]]:
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield from ((kind, node.lineno) for kind in _named(_resolved(node, aliases)))
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and (kind := _METHODS.get(node.func.attr)):
                yield kind, node.lineno
            elif last_name(node.func) in ("setattr", "delattr") and node.args and not _own(node.args[0], aliases):
                yield "patches_modules", node.lineno
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.Delete):
            targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
            for target in targets:
                yield from ((kind, node.lineno) for kind in _replaced(target, aliases))
        elif isinstance(node, ast.ClassDef):
            if any(_resolved(base, aliases) in _TENSOR for base in node.bases):
                yield "own_tensor_class", node.lineno
        elif isinstance(node, ast.FunctionDef) and node.name in ("__torch_function__", "__torch_dispatch__"):
            yield "own_tensor_class", node.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _FROM_FILES.match(node.value):
            yield "reads_files", node.lineno


def _aliases(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for, wherever it is imported."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else _root(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _resolved(node: ast.AST, aliases: dict[str, str]) -> str:
    name = dotted(node)
    root, dot, rest = name.partition(".")
    return f"{aliases.get(root, root)}{dot}{rest}"


def _named(name: str) -> Iterator[str]:
    for kind, names in _NAMES.items():
        if any(name == known or (known.endswith(".") and name.startswith(known)) for known in names):
            yield kind


def _replaced(target: ast.expr, aliases: dict[str, str]) -> Iterator[str]:
    """Assigning to `torch.allclose` patches, to `torch.backends.cudnn.benchmark` sets."""
    while isinstance(target, ast.Subscript):
        target = target.value
        if last_name(target) in ("modules", "__dict__") and _root(dotted(target)) in aliases:
            yield "patches_modules"
    if isinstance(target, ast.Attribute) and _root(dotted(target)) in aliases:
        name = _resolved(target, aliases)
        yield (
            "changes_settings" if name.startswith(("torch.backends.", "torch._inductor.config")) else "patches_modules"
        )


def _own(node: ast.expr, aliases: dict[str, str]) -> bool:
    """Whether an object is the candidate's own, as far as its name says."""
    return _root(dotted(node)) not in aliases


def _in_native(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for text in native_texts(tree):
        for kind, pattern in _NATIVE_RES.items():
            for match in pattern.finditer(str(text.value)):
                yield kind, text.lineno + str(text.value).count("\n", 0, match.start())


def _in_text(tree: ast.Module, lines: list[str]) -> Iterator[tuple[str, int]]:
    """Comments and strings that speak to a judge."""
    for number, line in enumerate(lines, start=1):
        _, mark, comment = line.partition("#")
        if mark and _JUDGE.search(comment):
            yield "speaks_to_the_judge", number
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _JUDGE.search(node.value):
            yield "speaks_to_the_judge", node.lineno


def _root(name: str) -> str:
    return name.partition(".")[0]


def _line(lines: list[str], number: int) -> str:
    return lines[number - 1].strip()[:LONGEST_TEXT] if 0 < number <= len(lines) else ""
