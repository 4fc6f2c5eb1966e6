"""A node made of files whose nsenter answers by a script and writes down how it was called."""

import os
from itertools import count
from shlex import quote

from tests.operations.conftest import Program

BOOT = "11111111-2222-3333-4444-555555555555"
ENTER = "--target 1 --mount --uts --ipc --net --pid --"

# It is a shell script because a program calls it dozens of times, and a shell starts in a tenth of Python's time.
NSENTER = """#!/bin/sh
printf '%s\\n' "$*" >> {calls}
. {answers}
echo "no answer to: $*" >&2
exit 1
"""


def answer(part, text="", **more):
    """One answer: `text`, with `code` 0, for a command that contains `part`; it may take `hangs` seconds.

    `does`: a line of the shell that is run before it.
    """
    return [part, {"text": text, **more}]


# A host that is no RKE2: its crictl is what programs ask for first.
NO_RKE2 = answer("/var/lib/rancher/rke2/bin/crictl", "nsenter: failed to execute", code=127)


class Node:
    """A node's root, its boot, and the program that runs there."""

    def __init__(self, folder, name):
        self.root, self.folder = folder / "host", folder
        boot = self.root / "proc/sys/kernel/random/boot_id"
        boot.parent.mkdir(parents=True)
        boot.write_text(f"{BOOT}\n")
        (folder / "bin").mkdir()
        self._numbers = count()
        script = NSENTER.format(calls=quote(str(folder / "calls")), answers=quote(str(folder / "answers")))
        (folder / "bin/nsenter").write_text(script)
        (folder / "bin/nsenter").chmod(0o755)
        self.program = Program(folder, name)
        self.program.variables |= {
            "HOST_ROOT": str(self.root),
            "EXPECTED_BOOT_ID": BOOT,
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }

    def answers(self, *answers):
        """Give the first answer whose text is part of the command; its "then" go before all others from now on."""
        (self.folder / "answers").write_text("".join(map(self._case, answers)))

    def _case(self, answer):
        """The answer as a command of the shell."""
        part, what = answer
        does = [self._before(what["then"])] if what.get("then") else []
        does += [what["does"]] if what.get("does") else []
        does += [f"printf '%s\\n' {quote(what.get('text', ''))}"]
        does += [f"sleep {what['hangs']}"] if what.get("hangs") else []
        does += [f"exit {what.get('code', 0)}"]
        return f'case "$*" in *{quote(part)}*) {"; ".join(does)};; esac\n'

    def _before(self, answers):
        """What puts these answers before those that stand when it is run."""
        first = self.folder / f"then-{next(self._numbers)}"
        first.write_text("".join(map(self._case, answers)))
        new, standing = (quote(str(self.folder / name)) for name in ("answers.new", "answers"))
        return f"cat {quote(str(first))} {standing} > {new}; mv {new} {standing}"

    def calls(self, part=""):
        """The commands so far that contain `part`, without nsenter's own options."""
        file = self.folder / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        assert all(line.startswith(f"{ENTER} ") for line in lines), lines
        return [line.removeprefix(f"{ENTER} ") for line in lines if part in line]

    def files(self):
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file())
