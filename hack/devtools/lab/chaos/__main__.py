import sys

from devtools.lab.chaos.cli import main

if __name__ == "__main__":
    sys.exit(main())
