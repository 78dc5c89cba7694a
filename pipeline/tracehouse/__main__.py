"""`python -m tracehouse`."""

from tracehouse.cli.process import run

run()
