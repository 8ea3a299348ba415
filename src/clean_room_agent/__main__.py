"""`python -m clean_room_agent` is `cra`."""

from clean_room_agent.cli.main import main

if __name__ == "__main__":
    main()
