"""``python -m foreword`` is the command ``foreword``."""

from foreword.cli.main import main

if __name__ == "__main__":
    main(prog_name="python -m foreword")
