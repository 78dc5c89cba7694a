"""The command line: each module parses, calls one command and renders what it returns."""
