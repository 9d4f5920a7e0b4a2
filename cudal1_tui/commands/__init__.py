"""One module a command, with its arguments, progress and tables beside it; each loads only what it needs."""
