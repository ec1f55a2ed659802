"""`python -m logishape` is the command `logishape`."""

from logishape.cli import main

if __name__ == "__main__":
    main()
