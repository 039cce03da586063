"""The command line: one command a file. Nothing in the library imports this, and only this imports click and rich."""
