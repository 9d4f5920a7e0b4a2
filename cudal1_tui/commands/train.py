"""`cudal1-tui train`: each part is imported once its command line is right. Nothing here imports torch."""

from __future__ import annotations

from cudal1_tui.commands import train_arguments


def main(words: list[str]) -> int:
    """`words` begin with `train`. Raises Cudal1Error."""
    what, rest = words[1:2], words[2:]
    if what == ["watch"]:
        options = train_arguments.watch_parser().parse_args(rest)
        from cudal1_tui.commands.train_watch import main as watch

        return watch(options.folder)
    if what == ["preferences"]:
        options = train_arguments.preferences_parser().parse_args(rest)
    elif what != ["config"]:
        options = train_arguments.stage_parser().parse_args(words[1:])
    from cudal1_tui.commands import train_child

    if what == ["config"]:
        return train_child.plain(["config", "--out", "."])
    if what == ["preferences"]:
        asked = ["preferences", "--out", str(options.out)]
        return train_child.plain([*asked, *train_child.changes(train_arguments.settings_of(options))])
    return train_child.stages(options)
