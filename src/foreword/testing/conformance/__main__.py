"""``python -m foreword.testing.conformance``."""

import sys

from foreword.testing.conformance.command import main

sys.exit(main())
