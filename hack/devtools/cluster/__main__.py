import sys

from devtools.cluster.cli import main

sys.exit(main())
