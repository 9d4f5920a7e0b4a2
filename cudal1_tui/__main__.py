"""`python -m cudal1_tui`."""

import sys

from cudal1_tui.cli import main

sys.exit(main())
