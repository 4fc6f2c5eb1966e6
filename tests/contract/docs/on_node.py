"""Stands in the PATH of a page's commands for the programs that would reach a node, or the network, or run for long.

Run as `python on_node.py SETTING PROGRAM ARGUMENTS…`; SETTING is a JSON file of `Setting`. What a page runs on a node
by `kubectl exec` or `kubectl debug`, and any program of detectors/ and operations/, runs on the simulated node, whose
/host and whose programs, those of this checkout, the command then means. The rest goes to the real program.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

NO_KUBECTL = 97
PROGRAM = re.compile(r"(?:^|/)detectors/(\w+)\.py$")
READY_SECONDS = 40.0


class Setting(NamedTuple):
    """Where things are. `kubectl`: "" where there is none; `options`: of each detector, that point it at the node."""

    root: str  # of the repository
    host: str  # the root of the simulated node
    environment: dict[str, str]
    options: dict[str, list[str]]
    kubectl: str
    port: int  # a free one, for the controller


def main(setting: Setting, program: str, words: list[str]) -> int:
    """Do what `program` with these arguments means here; its exit code."""
    if program == "kubectl":
        return kubectl(setting, words)
    if program == "remediator":
        return remediator(setting, words)
    return run(on_node(setting, [sys.executable, *words]), setting.environment)


def kubectl(setting: Setting, words: list[str]) -> int:
    """The real one, but for what it would run on a node: exec alone needs a kubelet, debug makes its Pod first."""
    before, inner = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    if not inner:
        return run([setting.kubectl, *words], {}) if setting.kubectl else NO_KUBECTL
    if "debug" in before and setting.kubectl:
        quiet = [word for word in before if word not in ("-it", "-i", "-t")]
        made = subprocess.run([setting.kubectl, *quiet, "--", *inner], capture_output=True, text=True, check=False)
        if made.returncode:
            print(made.stderr, end="")
            return made.returncode
    return run(on_node(setting, inner), setting.environment)


def on_node(setting: Setting, words: list[str]) -> list[str]:
    """A command as it runs on the simulated node."""
    words = [re.sub(r"(^|[=\s(])/host(?=/)", rf"\g<1>{setting.host}", word) for word in words]
    words = [word.replace("/opt/remediator/", f"{setting.root}/") for word in words]
    detector = next((found[1] for word in words if (found := PROGRAM.search(word))), "")
    helped = "--help" in words
    return [*words, *(setting.options.get(detector, []) if not helped else [])]


def remediator(setting: Setting, words: list[str]) -> int:
    """The command line of this checkout. `run` is asked to end, as by Ctrl-C, once it says that it is ready."""
    command = [sys.executable, "-m", "remediator", *words]
    if words[:1] != ["run"] or "--help" in words:
        return run(command, {})
    child = subprocess.Popen([*command, f"--listen=127.0.0.1:{setting.port}"])
    try:
        if not _ready(child, f"http://127.0.0.1:{setting.port}/readyz"):
            return child.returncode or 98
        child.send_signal(signal.SIGINT)
        return child.wait(20)
    finally:
        child.kill()


def _ready(child: subprocess.Popen[bytes], url: str) -> bool:
    from urllib.request import urlopen  # which takes as long to import as the rest of this program

    until = time.monotonic() + READY_SECONDS
    while child.poll() is None and time.monotonic() < until:
        try:
            with urlopen(url, timeout=5):
                return True
        except OSError:
            time.sleep(0.05)
    return False


def run(words: list[str], environment: dict[str, str]) -> int:
    """Run it to its end with this added to our environment; a detector's word about a node is no failure."""
    env = {**os.environ, **environment}
    if not any(PROGRAM.search(word) for word in words):
        os.execvpe(words[0], words, env)
    code = subprocess.run(words, env=env, check=False).returncode
    return 0 if code in (0, 1, 2) else code


def _read(path: str) -> Setting:
    said: dict[str, Any] = json.loads(Path(path).read_text())
    return Setting(**said)


if __name__ == "__main__":
    sys.exit(main(_read(sys.argv[1]), sys.argv[2], sys.argv[3:]))
