"""Real processes, shown on a node made of files with a cgroup of our choice and devices of the driver open."""

import subprocess
import threading


class Holders:
    """Starts them; one that is to come again is started anew when it has ended, as a kubelet would."""

    def __init__(self, node):
        self.proc, self.started, self.over = node.root / "proc", [], threading.Event()
        self.threads = []
        for name in ("self", "uptime"):
            (self.proc / name).symlink_to(f"/proc/{name}")

    def start(self, group, *devices, words=("sleep", "300"), again=0):
        """Start one in this cgroup with `devices` open; it comes again so many times."""
        child = subprocess.Popen(words, start_new_session=True)
        self.started.append(child)
        folder = self.proc / str(child.pid)
        (folder / "fd").mkdir(parents=True)
        for name in ("stat", "task", "comm"):  # gone as soon as it has ended and was waited for
            (folder / name).symlink_to(f"/proc/{child.pid}/{name}")
        (folder / "cgroup").write_text(group)
        for number, device in enumerate(devices, start=3):
            (folder / "fd" / str(number)).symlink_to(device)
        thread = threading.Thread(target=self._follow, args=(child, group, devices, words, again))
        self.threads.append(thread)
        thread.start()
        return child

    def _follow(self, child, group, devices, words, again):
        child.wait()
        if again and not self.over.is_set():
            self.start(group, *devices, words=words, again=again - 1)

    def end(self):
        self.over.set()
        for child in list(self.started):
            child.kill()
        for thread in list(self.threads):
            thread.join(10)
