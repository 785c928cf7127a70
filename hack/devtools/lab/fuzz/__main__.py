import sys

from devtools.lab.fuzz.cli import main

sys.exit(main())
