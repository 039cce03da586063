"""``foreword demo``: a support agent of a bookshop, played by a script, logged, and rebuilt from its log.

`shop` and the files beside it are a deployment like any other, `script` plays it, `proof` holds the log against what
the model got, `command` and `report` tell it.
"""

from foreword.cli.demo.command import demo

__all__ = ["demo"]
