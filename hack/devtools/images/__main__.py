import sys

from devtools.images.cli import main

sys.exit(main())
