from __future__ import annotations

import sys

from suite.cli import main

sys.exit(main())
