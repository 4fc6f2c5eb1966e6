"""Run the tests that have just failed once more, one after another: what fails again fails.

Many tests share the processors, on a real control plane with a dozen programs, too, and a limit of time may pass for no
fault of the product. A test that then passes alone is named, so that somebody looks at it. More than MOST failures are
no accident: none runs again.
"""

import json
import subprocess
import sys
from pathlib import Path

MOST = 3
CACHE = "build/again"  # of pytest, for these runs alone: the one that failed names it, too


def main(arguments: list[str], root: Path) -> int:
    """`arguments` choose tests, as in the run that failed. 0 where all that failed passes now."""
    failed = json.loads((root / CACHE / "v/cache/lastfailed").read_text())
    if len(failed) > MOST:
        print(f"{len(failed)} tests failed, more than {MOST}: none runs again.")
        return 1
    print(f"{len(failed)} failed; they run once more, with nothing beside them.", flush=True)
    command = [sys.executable, "-m", "pytest", "-rs", "--last-failed", "-o", f"cache_dir={CACHE}", *arguments]
    code = subprocess.run(command, cwd=root, check=False).returncode
    if code == 0:
        print(*(f"UNSTEADY: failed beside others, passed alone: {name}" for name in failed), sep="\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path.cwd()))
