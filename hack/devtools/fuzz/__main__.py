import sys

from devtools.fuzz.cli import main

sys.exit(main())
