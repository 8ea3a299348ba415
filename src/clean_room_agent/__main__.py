"""`python -m clean_room_agent` is `cra`."""

import sys

if not sys.flags.safe_path:
    # Python puts the folder where it was started first: the user's repository, whose modules are not ours to load.
    del sys.path[0]

from clean_room_agent.cli.start import main

if __name__ == "__main__":
    main()
