"""Watching references: which files count, what a save means, and the run that follows it."""
