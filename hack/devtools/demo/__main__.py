import sys

from devtools.demo.cli import main

sys.exit(main())
