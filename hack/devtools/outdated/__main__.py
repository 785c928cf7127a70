import sys

from devtools.outdated.cli import main

sys.exit(main())
