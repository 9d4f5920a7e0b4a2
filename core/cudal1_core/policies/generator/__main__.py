"""Asks come in on stdin, pieces go out on stdout, one JSON object a line; what libraries print goes to the log.

On a GPU every slice of decoding takes the turn that the referee takes too, so that nothing is generated while
something is timed there.
"""

from __future__ import annotations

import argparse
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TextIO

from cudal1_core.policies import lines

SLICE_S = 0.1  # longest time between two chances for the referee
GAP_S = 0.002  # given to whoever waits for the turn; a lock that is taken again at once would never be had


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    parser = argparse.ArgumentParser()
    for name in ("--model", "--adapter", "--device", "--dtype"):
        parser.add_argument(name)
    options = parser.parse_args()
    asks: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(sys.stdin, asks), daemon=True).start()

    def say(word: str, **values: Any) -> None:
        out.write(lines.line(word, **values))
        out.flush()

    say("loading", what="starting")
    try:
        from cudal1_core.policies.generator.loading import load

        loaded = load(
            options.model, options.adapter, options.device, options.dtype, lambda what: say("loading", what=what)
        )
    except Exception as error:  # whatever a library raises becomes words for the person
        say("trouble", id=None, meaning=f"{type(error).__name__}: {error}")
        raise
    say("ready", context=loaded.context, device=str(loaded.model.device), dtype=str(loaded.model.dtype))
    from cudal1_core.referee.turn import gpu_turn

    Server(loaded, say, lambda: gpu_turn(str(loaded.model.device))).serve(asks)


class Server:
    def __init__(self, loaded: Any, say: Callable[..., None], turn: Callable[[], AbstractContextManager[None]]) -> None:
        self._loaded = loaded
        self._say = say
        self._turn = turn
        self._jobs: dict[int, Any] = {}
        self._later: list[dict[str, Any]] = []  # adapters wait until no stream is open

    def serve(self, asks: queue.Queue[str | None]) -> None:
        """Until the asks end with None."""
        while True:
            while not asks.empty() or not self._jobs:
                text = asks.get()
                if text is None:
                    return
                self._take(*lines.parse(text))
            self.play_slice()
            time.sleep(GAP_S)

    def play_slice(self) -> None:
        """Some tokens of every open stream, in one turn on the device."""
        import torch

        with self._turn():
            end = time.monotonic() + SLICE_S
            while self._jobs and time.monotonic() < end:
                for id in list(self._jobs):
                    self._step(id)
            if self._loaded.model.device.type == "cuda":
                torch.cuda.synchronize(self._loaded.model.device)
        if not self._jobs:
            self._adapt()

    def _step(self, id: int) -> None:
        try:
            for piece in self._jobs[id].step():
                self._say("piece", id=id, index=piece.index, text=piece.text, done=piece.done)
            if self._jobs[id].finished:
                del self._jobs[id]
        except Exception as error:  # out of memory, a broken model: this request ends, the child goes on
            del self._jobs[id]
            self._say("trouble", id=id, meaning=f"{type(error).__name__}: {error}")

    def _take(self, word: str, said: dict[str, Any]) -> None:
        from cudal1_core.policies.generator.streams import Job, encode

        if word == "generate":
            ids = encode(self._loaded, said["messages"])
            if len(ids) >= self._loaded.context:
                meaning = f"The prompt has {len(ids)} tokens; the model's context holds {self._loaded.context}."
                self._say("trouble", id=said["id"], meaning=meaning)
                return
            how = {name: said[name] for name in ("longest", "temperature", "top_p", "seed")}
            self._jobs[said["id"]] = Job(self._loaded, ids, said["n"], **how)
        elif word == "cancel" and said["id"] in self._jobs:
            self._jobs[said["id"]].cancel(said["index"])
            if self._jobs[said["id"]].finished:
                del self._jobs[said["id"]]
        elif word == "count":
            counts = [len(encode(self._loaded, [{"role": "user", "content": text}])) for text in said["texts"]]
            self._say("counted", id=said["id"], counts=counts)
        elif word == "adapter":
            self._later.append(said)
        if not self._jobs:
            self._adapt()

    def _adapt(self) -> None:
        from cudal1_core.policies.generator.loading import adapted

        while self._later:
            said = self._later.pop(0)
            try:
                with self._turn():
                    self._loaded.model = adapted(self._loaded.model, said["path"])
                self._say("adapted", id=said["id"])
            except Exception as error:
                self._say("trouble", id=said["id"], meaning=f"{type(error).__name__}: {error}")


def _read(source: TextIO, asks: queue.Queue[str | None]) -> None:
    for text in source:
        asks.put(text)
    os._exit(0)  # whoever asked is gone; also in the middle of loading


if __name__ == "__main__":
    main()
