"""The playbook's child process: asks come in on stdin, candidates go out on stdout, one JSON object a
line."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TextIO

from cudal1_core.playbook.messages import Ask, Finished, reply_line


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the reference prints while it is imported goes to the log
    import torch

    torch.set_num_threads(1)
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)  # rehearsals may fail
    serve(sys.stdin, out)


def serve(asks: TextIO, out: TextIO) -> None:
    from cudal1_core.playbook.loading import LoadError
    from cudal1_core.playbook.search import Search
    from cudal1_core.playbook.subject import read

    searches: dict[tuple[str, str, str, str], Search] = {}
    for line in asks:
        ask = Ask.parse(line)
        key = (ask.path, ask.source, ask.model, ask.device)
        trouble = ""
        try:
            if key not in searches:
                searches.clear()
                searches[key] = Search(read(Path(ask.path), ask.source, ask.model, ask.device))
            for written in searches[key].next(ask.tried, ask.n, ask.seed):
                out.write(reply_line(written))
                out.flush()
        except (LoadError, SyntaxError) as error:
            trouble = str(error)
        out.write(reply_line(Finished(trouble)))
        out.flush()


if __name__ == "__main__":
    main()
