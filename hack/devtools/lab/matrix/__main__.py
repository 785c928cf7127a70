import sys

from devtools.lab.matrix.cli import main

sys.exit(main())
