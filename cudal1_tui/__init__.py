"""The screen and the command line of cudal1-tui."""

__version__ = "0.1.0"
