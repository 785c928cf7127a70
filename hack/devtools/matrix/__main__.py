import sys

from devtools.matrix.cli import main

sys.exit(main())
