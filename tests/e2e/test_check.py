"""`cudal1-tui check` with the real referee: what is right, wrong and gone, and its exit status."""

from __future__ import annotations

import json

from tests.e2e.workshop import RIGHT, WRONG, Workshop

HEADER = (
    "# 1.10x as fast as {reference} (Model), on a machine\n# judge it again: cudal1-tui verify {reference} x.py\n\n"
)


def test_every_accepted_file_is_judged_and_told(workshop: Workshop) -> None:
    for name, reference, source in (
        ("a_optimized.py", "model.py", RIGHT),
        ("b_optimized.py", "model.py", WRONG),
        ("c_optimized.py", "lost.py", RIGHT),
    ):
        workshop.write(name, HEADER.format(reference=reference) + source)
    answer = workshop.run("check", ".", "--json", "--device", "cpu")
    assert answer.returncode == 1, answer.stderr
    files = {file["path"].rpartition("/")[2]: file for file in json.loads(answer.stdout)["files"]}
    assert (files["b_optimized.py"]["state"], files["c_optimized.py"]["state"]) == ("wrong", "gone")
    assert files["a_optimized.py"]["state"] in ("faster", "right", "slower")  # by how busy the machine is
    assert files["a_optimized.py"]["speedup"] > 0
    assert files["a_optimized.py"]["was"] == 1.1
    assert "wrong result" in files["b_optimized.py"]["reason"]
    assert "NO LONGER" not in (workshop.folder / "b_optimized.py").read_text()  # only --renew writes


def test_nothing_accepted_is_no_failure(workshop: Workshop) -> None:
    answer = workshop.run("check", "model.py")
    assert (answer.returncode, answer.stdout) == (0, "Nothing accepted in model.py: there is nothing to judge again.\n")


def test_a_path_that_is_not_there_is_wrong_usage(workshop: Workshop) -> None:
    answer = workshop.run("check", "missing", "--json")
    assert answer.returncode == 2
    assert json.loads(answer.stdout)["error"] == "missing: no such file or folder"
