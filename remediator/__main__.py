"""`python -m remediator` and the program `remediator` are the command line."""

import sys

INTERRUPTED = 130  # as every program that Ctrl-C ends


def main() -> None:
    """The entry point. Ctrl-C while it still loads what it needs ends it in one line, too."""
    try:
        from remediator.cli import load
        from remediator.cli import main as command_line

        load(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("remediator: nothing was done\n")
        raise SystemExit(INTERRUPTED) from None
    command_line()


if __name__ == "__main__":
    main()
