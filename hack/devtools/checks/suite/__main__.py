from __future__ import annotations

import sys

from devtools.checks.suite.cli import main

sys.exit(main())
