"""What the workbench is made of. Widgets take plain data and draw it; none knows of a run."""
