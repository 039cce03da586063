"""How Acme writes to its customers: a plugin for Foreword.

Whoever uses it writes in a deployment file:

    plugins:
      - {id: style, use: acme-house-style, config: {language: en-GB, avoid: [utilize]}}
"""

from acme_house_style.plugin import HouseStyle, house_style

__all__ = ["HouseStyle", "house_style"]
