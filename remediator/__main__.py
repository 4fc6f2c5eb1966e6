"""`python -m remediator` and the program `remediator` are the command line."""

import sys

INTERRUPTED = 130  # as every program that Ctrl-C ends


def main() -> None:
    """The entry point. Ctrl-C while it still loads what it needs ends it in one line, too."""
    try:
        from remediator import options_apart

        options = options_apart.read() if options_apart.wanted() else None
        if options is None:
            from remediator.cli import load
            from remediator.cli import main as command_line

            load(sys.argv[1:])
        else:
            from remediator import process
    except KeyboardInterrupt:
        sys.stderr.write("remediator: nothing was done\n")
        raise SystemExit(INTERRUPTED) from None
    if options is None:
        command_line()
        return
    try:
        process.main(options)
    except KeyboardInterrupt:  # before it follows signals itself, and so before it has done anything
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
