"""Where a worker runs: its namespaces, its files, its limits, and the supervisor that can freeze or end it.

A hostile runner is three processes. The outer one makes the namespaces; the second is process 1 of the new
PID namespace, trusted, and supervises; the third runs the candidate after it has given up every right. The
trusted worker has a supervisor too, without the walls. Each layer that holds is named; one that the system
lacks is left out, and the verdict says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn

from cudal1_core.referee import caches, landlock, linux, seccomp
from cudal1_core.referee.supervisor import TMPFS_BYTES, Supervisor

ENVIRONMENT = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "TORCH_CUDA_ARCH_LIST",
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CC", "CXX", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT",
)  # fmt: skip
SPINS = "10000"  # some 10 µs, in which a thread of OpenMP waits for the others before it sleeps

_SYSTEM_READ = (
    "/usr", "/lib", "/lib64", "/bin", "/sbin", "/opt", "/sys", "/proc", "/run/nvidia-persistenced", "/etc/alternatives",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd",
    "/etc/group",
)  # fmt: skip
Walls = Literal["none", "process", "all"]

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass(frozen=True)
class Spec:
    """What is needed to start one worker. Sent pickled from the host to the process that the zygote has forked."""

    role: str  # "reference" or "candidate": which worker's main runs
    folder: str  # private folder, empty; a tmpfs is mounted on it where possible
    files: dict[str, bytes] = field(default_factory=dict)  # relative path -> content, laid into the folder
    # none; "process": a PID namespace, so that freezing is quick; "all": every namespace, Landlock, no capabilities
    walls: Walls = "all"
    log: str = os.devnull
    environment: dict[str, str] = field(default_factory=dict)  # replaces the whole environment
    read: tuple[str, ...] = ()  # extra paths the worker may read
    cores: tuple[int, ...] = ()  # processor cores it starts on; empty: all
    memory_limit: int = 0  # bytes over all its processes; 0 is no limit
    gpu: bool = True  # may open a GPU; one that may not stays on its cores, too
    pack: str = ""  # file for what its compilers have made when it ends
    caches: str = ""  # such a file of another worker, with which it begins


def passed_on() -> dict[str, str]:
    """What runners see of our environment.

    After a pause OpenMP's threads wake late: a call of 1 ms took 7 ms on two cores, because one spun on the core that
    the other was to run on. So they spin briefly, unless the person has said how long.
    """
    known = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return known if "OMP_WAIT_POLICY" in known else {"GOMP_SPINCOUNT": SPINS, **known}


def private_environment(folder: str) -> dict[str, str]:
    """Caches and temporary files of one worker, all inside its own folder."""
    names = {
        "TMPDIR": "tmp",
        "TORCH_EXTENSIONS_DIR": "torch_extensions",
        "TRITON_CACHE_DIR": "triton",
        "TORCHINDUCTOR_CACHE_DIR": "inductor",
        "CUDA_CACHE_PATH": "cuda_cache",
    }
    return {key: f"{folder}/.cache/{name}" for key, name in names.items()}


def readable_paths() -> tuple[str, ...]:
    """What any Python program on this machine needs to read: the interpreter, its packages, the system."""
    paths = {sys.prefix, sys.base_prefix, sys.exec_prefix, *sysconfig.get_paths().values()}
    for module in ("torch", "numpy", "triton"):
        loaded = sys.modules.get(module)
        if loaded is not None and loaded.__file__:
            paths.add(str(Path(loaded.__file__).parent.parent))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if name in os.environ:
            paths.add(os.environ[name])
    return tuple(sorted(path for path in paths if path not in ("/", ""))) + _SYSTEM_READ


def start(spec: Spec, main: Callable[[int], None], channel: int, control: int, report: int) -> NoReturn:
    """Runs in the process just forked by the zygote, and never returns.

    `channel` is the worker's end of its message socket, `control` takes freeze commands from the trusted
    worker, `report` tells the host what became of the worker.
    """
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    if spec.cores:
        os.sched_setaffinity(0, spec.cores)
    goes_on = os.O_APPEND if spec.caches else os.O_TRUNC  # after what its compilers said
    log = os.open(spec.log, os.O_WRONLY | os.O_CREAT | goes_on, 0o600)
    pack = os.open(spec.pack, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) if spec.pack else None
    layers: list[str] = []
    if spec.walls != "none":
        layers = _unshare(spec.walls == "all")
    if "pid namespace" in layers:
        child = os.fork()
        if child:
            for fd in (channel, control, report, log, *_there(pack)):
                os.close(fd)
            os.waitpid(child, 0)
            os._exit(0)
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        with contextlib.suppress(OSError):
            linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    layers += _prepare_files(spec, layers)
    output_read, output_write = os.pipe()
    ready_read, ready_write = os.pipe()
    worker = os.fork()
    if worker == 0:
        for fd in (control, report, log, output_read, ready_read, *_there(pack)):
            os.close(fd)
        _become_worker(spec, main, channel, output_write, ready_write)
    for fd in (channel, output_write, ready_write):
        os.close(fd)
    memory = None
    with contextlib.suppress(OSError):
        memory = os.open(f"/proc/{worker}/mem", os.O_RDONLY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):
        linux.prctl(linux.PR_SET_DUMPABLE, 0)
    with os.fdopen(ready_read, "rb") as pipe:
        told = pipe.read()
    layers += json.loads(told) if told else []
    if memory is not None:
        layers.append("memory in view")
    if spec.memory_limit:
        layers += ["memory watch", "process watch"]
    # kill(-1) reaches every process of a namespace, so only process 1 of a new one may ever use it
    alone = os.getpid() == 1
    supervisor = Supervisor(
        spec.folder, spec.memory_limit, worker, alone, control, report, output_read, log, memory, pack
    )
    supervisor.tell({"isolation": layers})
    supervisor.loop()
    os._exit(0)


def _there(fd: int | None) -> tuple[int, ...]:
    return () if fd is None else (fd,)


def _unshare(everything: bool) -> list[str]:
    """The namespaces this system grants, entered; their names."""
    uid, gid = os.getuid(), os.getgid()
    others = [("mount namespace", linux.CLONE_NEWNS), ("pid namespace", linux.CLONE_NEWPID)]
    if everything:
        others += [("network namespace", linux.CLONE_NEWNET), ("ipc namespace", linux.CLONE_NEWIPC)]
    layers = []
    with contextlib.suppress(OSError):
        linux.unshare(linux.CLONE_NEWUSER)
        linux.map_own_user(uid, gid)
        layers.append("user namespace")
    for name, flag in others:
        with contextlib.suppress(OSError):
            linux.unshare(flag)
            layers.append(name)
    return layers


def _prepare_files(spec: Spec, layers: list[str]) -> list[str]:
    done = []
    if "mount namespace" in layers:
        with contextlib.suppress(OSError):
            linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
            linux.mount(
                "tmpfs",
                spec.folder,
                "tmpfs",
                linux.MS_NOSUID | linux.MS_NODEV,
                f"size={TMPFS_BYTES},mode=700",
            )
            done.append("private temporary files")
        if "pid namespace" in layers:
            with contextlib.suppress(OSError):
                linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV)
                done.append("private /proc")
    for name in private_environment(spec.folder).values():
        os.makedirs(name, exist_ok=True)  # noqa: PTH103
    if spec.caches:
        with contextlib.suppress(OSError, tarfile.TarError):  # it is made once more then
            caches.unpack(spec.caches, spec.folder)
    for name, content in spec.files.items():
        path = Path(spec.folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return done


def _become_worker(spec: Spec, main: Callable[[int], None], channel: int, output: int, ready: int) -> NoReturn:
    try:
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(spec.folder)
        os.environ.clear()
        os.environ.update(spec.environment)
        tempfile.tempdir = None  # what the zygote looked up is not this worker's
        if spec.walls == "all":
            os.environ.update(private_environment(spec.folder))
            os.environ["PWD"] = spec.folder
        layers = _confine(spec) if spec.walls == "all" else []
        if spec.walls == "process":  # it is timed against a candidate, whose system calls are filtered
            with contextlib.suppress(OSError):
                _keep_privileges_down()
                seccomp.restrict(refuse=False)
        os.write(ready, json.dumps(layers).encode())
        os.closerange(3, min(channel, ready))
        os.closerange(min(channel, ready) + 1, max(channel, ready))
        os.closerange(max(channel, ready) + 1, 4096)
        os.close(ready)
        main(channel)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 70
    with contextlib.suppress(BaseException):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code & 0xFF)


def _confine(spec: Spec) -> list[str]:
    layers = []
    with contextlib.suppress(OSError):
        linux.drop_capabilities()
        layers.append("no capabilities")
    with contextlib.suppress(OSError):
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
        layers.append("no new privileges")
        devices = [*_DEVICES, *map(str, Path("/dev").glob("nvidia*") if spec.gpu else ())]
        # CUDA names its threads under /proc/self/task and fails to start (error 304) where it may not
        writable = (spec.folder, f"/proc/{os.getpid()}")
        abi = landlock.restrict((*readable_paths(), *spec.read), writable, devices)
        layers.append(f"landlock {abi}")
    with contextlib.suppress(OSError):
        seccomp.restrict(pinned=not spec.gpu)
        layers.append("seccomp")
    layers.append("clean environment")
    return layers


def probe() -> dict[str, str]:
    """Each isolation layer -> "works", or why not. Tries them in a child; needs no torch."""
    tries: dict[str, Callable[[], object]] = {
        "user namespace": lambda: linux.unshare(linux.CLONE_NEWUSER),
        "pid namespace": lambda: _with_user(linux.CLONE_NEWPID),
        "mount namespace": lambda: _with_user(linux.CLONE_NEWNS),
        "network namespace": lambda: _with_user(linux.CLONE_NEWNET),
        "ipc namespace": lambda: _with_user(linux.CLONE_NEWIPC),
        "landlock": landlock.abi,
        "no new privileges": _keep_privileges_down,
        "seccomp": _filter,
    }
    return {name: _in_child(attempt) for name, attempt in tries.items()}


def _keep_privileges_down() -> None:
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)


def _filter() -> None:
    _keep_privileges_down()
    seccomp.restrict()


def _with_user(flag: int) -> None:
    with contextlib.suppress(OSError):
        linux.unshare(linux.CLONE_NEWUSER)
    linux.unshare(flag)


def _in_child(attempt: Callable[[], object]) -> str:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            attempt()
            os.write(write, b"works")
        except OSError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(pid, 0)
    return answer or "failed"


assert ctypes.sizeof(ctypes.c_void_p) == 8, "64-bit systems only"
