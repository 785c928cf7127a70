from __future__ import annotations

import sys

from devtools.suite.cli import main

sys.exit(main())
