import sys

from devtools.lab.demo.cli import main

sys.exit(main())
