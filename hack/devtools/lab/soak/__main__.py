import sys

from devtools.lab.soak.cli import main

sys.exit(main())
