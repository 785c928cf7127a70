import sys

from devtools.build.images.cli import main

sys.exit(main())
