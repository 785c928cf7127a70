"""``python -m dljob``."""

import sys

from dljob.cli import main

sys.exit(main())
