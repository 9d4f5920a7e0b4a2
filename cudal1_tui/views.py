"""The names of what can stand in the place of the code, in the order of their number keys."""

PAGES = ("evidence", "progress", "techniques", "decisions", "prompt", "answer", "output")
OF_THE_RUN = ("progress", "techniques", "decisions")  # the others are about the selected candidate
NO_PLOT = "Each candidate's speedup is plotted here once one has been timed."
VIEWS = ("code", "diff", *PAGES)
