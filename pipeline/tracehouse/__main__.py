"""`python -m tracehouse`."""

from tracehouse.cli.main import main

main(prog_name="tracehouse")
