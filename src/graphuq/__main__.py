"""The command ``graphuq`` as ``python -m graphuq``, where scripts are not on the path."""

from graphuq.cli import main

if __name__ == "__main__":
    main()
