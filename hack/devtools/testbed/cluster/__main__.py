import sys

from devtools.testbed.cluster.cli import main

sys.exit(main())
