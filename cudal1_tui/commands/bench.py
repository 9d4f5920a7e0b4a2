"""`cudal1-tui bench`, `bench report` and `bench compare`: each is imported once its command line is right."""

from __future__ import annotations

from cudal1_tui.commands import bench_arguments


def main(words: list[str]) -> int:
    """`words` begin with `bench`. Raises Cudal1Error."""
    what, rest = words[1:2], words[2:]
    if what == ["report"]:
        options = bench_arguments.report_parser().parse_args(rest)
        from cudal1_tui.commands.bench_report import main as report

        return report(options)
    if what == ["compare"]:
        options = bench_arguments.compare_parser().parse_args(rest)
        from cudal1_tui.commands.bench_compare import main as compare

        return compare(options)
    options = bench_arguments.suite_parser().parse_args(words[1:])
    from cudal1_tui.commands.bench_suite import main as suite

    return suite(options)
