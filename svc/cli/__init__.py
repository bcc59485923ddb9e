"""The command line: `main.py` is the door, each further file is one command."""
