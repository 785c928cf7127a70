import sys

from devtools.soak.cli import main

sys.exit(main())
