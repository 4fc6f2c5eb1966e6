"""`python -m remediator` is the command line."""

from remediator.cli import main

if __name__ == "__main__":
    main()
