"""A BMC over real HTTPS that keeps state as DMTF's mockups show it, and an ipmitool that keeps its own in a file."""

import base64
import json
import shutil
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.harness.certificates import self_signed
from tests.harness.objects import SYSTEM_UUID as UUID

USER, PASSWORD = "remediator", "s3cret-of-the-bmc"
SYSTEMS = "/redfish/v1/Systems"
RESET = "/Actions/ComputerSystem.Reset"


def mounted(folder: Path, **keys: str) -> None:
    """Keys of a Secret or a ConfigMap as files, and nothing else there; as a kubelet does, behind links."""
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "..2026"
    data.mkdir(parents=True)
    (folder / "..data").symlink_to(data.name)
    for name, value in keys.items():
        (data / name).write_text(value)
        (folder / name).symlink_to(f"..data/{name}")


class FakeBmc:
    """One BMC with one or more systems. `resets` has every ResetType that was carried out, in order."""

    def __init__(self, folder: Path):
        self.systems = {"System.Embedded.1": UUID}  # Id and UUID
        self.allowed: list[str] | None = ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle"]
        self.action_info = False  # say what is allowed in a document of its own
        self.unsupported: set[str] = set()  # listed, and answered with 400 all the same
        self.target = ""  # where the reset action is said to be; "" for where it is
        self.slow_off = self.slow_on = 0.0  # seconds in between
        self.ignores: set[str] = set()  # taken, and nothing comes of it
        self.lose_reply: set[str] = set()  # carried out, and the connection closed without an answer
        self.fail_next: list[int] = []  # statuses for the very next requests
        self.says = ""  # what it adds to each error
        self.state, self.next_state, self.due = "On", "On", 0.0
        self.resets: list[str] = []
        self.password = PASSWORD
        self.requests: list[tuple[str, str]] = []
        self.log: list[tuple[str, float]] = []
        self.on_request = lambda method, path: None
        self.lock = threading.Lock()
        folder.mkdir()
        context, self.ca = self_signed(folder)
        bmc = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else {}
                answer = bmc.answer(self.command, self.path, self.headers.get("Authorization"), body)
                if answer is None:
                    self.close_connection = True
                    return
                data = b"" if answer[0] == 204 else json.dumps(answer[1]).encode()  # 204 has no body
                self.send_response(answer[0])
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = handle_any

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.server_address[1]}"

    def entry(self, **more) -> dict:
        """What the Secret says of this BMC."""
        ours = {"address": self.address, "username": USER, "password": self.password, "ca.crt": self.ca.read_text()}
        return {name: value for name, value in {**ours, **more}.items() if value is not None}

    def mount(self, folder: Path, **more) -> Path:
        """The Secret of the node as a kubelet mounts it."""
        mounted(folder / "node", **self.entry(**more))
        return folder

    def power(self) -> str:
        """PowerState now."""
        if time.monotonic() >= self.due:
            self.state = self.next_state
        return self.state

    def become(self, between: str, then: str, seconds: float) -> None:
        """Be `then` after some seconds of `between`."""
        self.state, self.next_state, self.due = between, then, time.monotonic() + seconds

    def answer(self, method, path, authorization, body):
        with self.lock:
            self.requests.append((method, path))
            self.on_request(method, path)
            if path != "/redfish/v1/" and authorization != self.word():
                return 401, error(f"While attempting to establish a connection, the service denied access.{self.says}")
            if self.fail_next:
                return self.fail_next.pop(0), error(f"The service is temporarily unavailable.{self.says}")
            return self.post(path, body) if method == "POST" else self.read(path)

    def word(self) -> str:
        return "Basic " + base64.b64encode(f"{USER}:{self.password}".encode()).decode()

    def read(self, path):
        if path == "/redfish/v1/":
            return 200, {"@odata.id": path, "RedfishVersion": "1.15.0", "Systems": {"@odata.id": SYSTEMS}}
        if path == SYSTEMS:
            return 200, {"Members": [{"@odata.id": f"{SYSTEMS}/{name}"} for name in self.systems]}
        name = path.removeprefix(f"{SYSTEMS}/")
        if name in self.systems:
            return 200, self.system(name)
        if path.endswith("/ResetActionInfo"):
            return 200, {"Parameters": [{"Name": "ResetType", "DataType": "String", "AllowableValues": self.allowed}]}
        return 404, error("The resource was not found.")

    def system(self, name):
        path = f"{SYSTEMS}/{name}"
        action = {"target": self.target or path + RESET}
        if self.action_info:
            action["@Redfish.ActionInfo"] = f"{path}/ResetActionInfo"
        elif self.allowed is not None:
            action["ResetType@Redfish.AllowableValues"] = self.allowed
        told = {"@odata.id": path, "Id": name, "PowerState": self.power(), "Actions": {"#ComputerSystem.Reset": action}}
        return told | ({"UUID": self.systems[name]} if self.systems[name] else {})

    def post(self, path, body):
        kind = body.get("ResetType")
        if not path.endswith(RESET) or path.removeprefix(f"{SYSTEMS}/").removesuffix(RESET) not in self.systems:
            return 404, error("The resource was not found.")
        if kind in self.unsupported or kind not in (self.allowed or [kind]):
            return 400, error(f"The value {kind} for the parameter ResetType is not supported.")
        self.resets.append(kind)
        self.log.append((kind, time.monotonic()))
        if kind not in self.ignores:
            self.carry_out(kind)
        return None if kind in self.lose_reply else (204, {})

    def carry_out(self, kind):
        if kind == "ForceOff":
            self.become("PoweringOff", "Off", self.slow_off)
        elif kind in ("On", "ForceOn"):
            self.become("PoweringOn", "On", self.slow_on)
        else:
            self.become("On", "On", 0.0)


def error(message):
    """Return an error as DSP0266 clause 8.6 has it."""
    extended = {"MessageId": "Base.1.8.GeneralError", "Message": message}
    return {"error": {"code": "Base.1.8.GeneralError", "message": "see", "@Message.ExtendedInfo": [extended]}}


# Keeps On or Off in a file and writes down how it was called and which password it was given.
IPMITOOL = """#!{python} -IS
import json, os, sys
folder, words = {folder!r}, sys.argv[1:]
with open(folder + "/calls", "a") as calls:
    calls.write(json.dumps([words, os.environ.get("IPMI_PASSWORD")]) + "\\n")
state = open(folder + "/power").read()
if os.environ.get("IPMI_PASSWORD") != {password!r}:
    sys.exit("Error: Unable to establish IPMI v2: RAKP 2 HMAC is invalid with " + os.environ["IPMI_PASSWORD"])
if state == "mute":
    sys.exit("Error: Unable to establish IPMI v2 / RMCP+ session")
if words[-3:] == ["raw", "0x06", "0x37"]:
    guid = open(folder + "/guid").read()
    print(guid, file=sys.stderr if "rsp=" in guid else sys.stdout)
    sys.exit(1 if "rsp=" in guid else 0)
if words[-1] != "status":
    open(folder + "/power", "w").write(words[-1])
    print("Chassis Power Control: " + words[-1])
else:
    print("Chassis Power is " + state)
"""


class FakeIpmi:
    """An ipmitool in `folder`/bin. `calls` are (words, password); `set` makes the chassis on, off or mute."""

    def __init__(self, folder: Path):
        self.folder = folder / "ipmi"
        self.bin = self.folder / "bin"
        self.bin.mkdir(parents=True)
        script = IPMITOOL.format(python=sys.executable, folder=str(self.folder), password=PASSWORD)
        (self.bin / "ipmitool").write_text(script)
        (self.bin / "ipmitool").chmod(0o755)
        self.set("on")
        self.guid(bytes.fromhex(UUID.replace("-", ""))[::-1])

    def guid(self, told: bytes | None) -> None:
        """Answer Get System GUID with these bytes; None: the BMC has no such command."""
        none = "Unable to send RAW command (channel=0x0 netfn=0x6 lun=0x0 cmd=0x37 rsp=0xc1): Invalid command"
        (self.folder / "guid").write_text(none if told is None else " " + told.hex(" "))

    def set(self, state: str) -> None:
        (self.folder / "power").write_text(state)

    def power(self) -> str:
        return (self.folder / "power").read_text()

    def calls(self) -> list[tuple[list[str], str]]:
        file = self.folder / "calls"
        return [tuple(json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []
