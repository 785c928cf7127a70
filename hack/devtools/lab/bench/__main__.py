import sys

from devtools.lab.bench.cli import main

sys.exit(main())
