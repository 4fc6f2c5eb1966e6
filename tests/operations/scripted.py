"""A node made of files whose nsenter answers by a script and writes down how it was called."""

import json
import os
import sys

from tests.operations.conftest import Program

BOOT = "11111111-2222-3333-4444-555555555555"
ENTER = "--target 1 --mount --uts --ipc --net --pid --"

# The first answer whose text is part of the command is given; "then" are answers that go before all others from now on.
NSENTER = """#!{python} -IS
import json, os, sys, time
said = " ".join(sys.argv[1:])
with open({calls!r}, "a") as calls:
    calls.write(said + "\\n")
with open({answers!r}) as file:
    answers = json.load(file)
for part, answer in answers:
    if part in said:
        break
else:
    sys.exit("no answer to: " + said)
if answer.get("then"):
    with open({answers!r} + ".new", "w") as file:
        json.dump(answer["then"] + answers, file)
    os.replace({answers!r} + ".new", {answers!r})
print(answer.get("text", ""), flush=True)
time.sleep(answer.get("hangs", 0))
sys.exit(answer.get("code", 0))
"""


def answer(part, text="", **more):
    """One answer: `text`, with `code` 0, for a command that contains `part`; it may take `hangs` seconds."""
    return [part, {"text": text, **more}]


class Node:
    """A node's root, its boot, and the program that runs there."""

    def __init__(self, folder, name):
        self.root, self.folder = folder / "host", folder
        boot = self.root / "proc/sys/kernel/random/boot_id"
        boot.parent.mkdir(parents=True)
        boot.write_text(f"{BOOT}\n")
        (folder / "bin").mkdir()
        script = NSENTER.format(python=sys.executable, calls=str(folder / "calls"), answers=str(folder / "answers"))
        (folder / "bin/nsenter").write_text(script)
        (folder / "bin/nsenter").chmod(0o755)
        self.program = Program(folder, name)
        self.program.variables |= {
            "HOST_ROOT": str(self.root),
            "EXPECTED_BOOT_ID": BOOT,
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }

    def answers(self, *answers):
        (self.folder / "answers").write_text(json.dumps(answers))

    def calls(self, part=""):
        """The commands so far that contain `part`, without nsenter's own options."""
        file = self.folder / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        assert all(line.startswith(f"{ENTER} ") for line in lines), lines
        return [line.removeprefix(f"{ENTER} ") for line in lines if part in line]

    def files(self):
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file())
