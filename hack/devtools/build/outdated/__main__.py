import sys

from devtools.build.outdated.cli import main

sys.exit(main())
