"""A BMC that speaks Redfish (DMTF DSP0266): find the node's ComputerSystem, read its PowerState, reset it.

Everything is discovered from the service root; no path is guessed. TLS is verified, against the entry's own authority
if it has one, unless the entry says insecure.
"""

import http.client
import json
import ssl
from typing import Any

from nodelib.bmc.entry import Entry
from nodelib.bmc.identity import another, identify, is_among, is_told
from nodelib.bmc.power import Silent, Steps, choose
from nodelib.contract.operation import Failed, Refused
from nodelib.net.answers import why

ROOT = "/redfish/v1/"
TIMEOUT = 30.0  # seconds for one answer: BMCs are slow
RESET = "#ComputerSystem.Reset"
# Off and on is the only way that can be watched and, when an answer is lost, told from what was not done.
WAYS = (Steps("ForceOff", "On"), Steps("ForceOff", "ForceOn"), Steps("PowerCycle", ""), Steps("ForceRestart", ""))

Object = dict[str, Any]


class Redfish:
    """One ComputerSystem of one BMC."""

    def __init__(self, entry: Entry, system_uuid: str):
        """Find the node's system. Raises Refused for none or another machine's, Failed, Silent."""
        self.entry = entry
        self._headers = {"Authorization": f"Basic {entry.word}", "Accept": "application/json"}
        self._connection = http.client.HTTPSConnection(entry.host, entry.port, timeout=TIMEOUT, context=_context(entry))
        try:
            system = self._find(entry.uuid or system_uuid)
            self.identity = identify([str(system.get("UUID") or "")], system_uuid, entry)
            self._path = system["@odata.id"]
            self._target, allowed = self._reset_of(system)
            self.steps = choose(allowed, WAYS)
        except (Failed, Refused) as error:  # names and links of the BMC, which may repeat what it was sent
            raise type(error)(entry.hidden(str(error))) from None

    def power(self) -> str:
        """Return PowerState as the BMC has it now."""
        return self.entry.hidden(str(self._get(self._path).get("PowerState") or ""))

    def tell(self, step: str) -> None:
        """Send one ResetType, once, over a connection of its own: one that had gone stale would lose it."""
        self._connection.close()
        self._send("POST", self._target, {"ResetType": step})

    def shown(self, step: str) -> str:
        """The request, in words."""
        target = self.entry.hidden(self._target)
        return f'POST {{"ResetType": "{step}"}} to https://{self.entry.host}:{self.entry.port}{target}'

    def _find(self, uuid: str) -> Object:
        members = self._get(_link(self._get(ROOT).get("Systems"), "Systems of the service root")).get("Members") or []
        systems = [self._get(_link(member, "a member of Systems")) for member in members]
        system = pick([system for system in systems if RESET in (system.get("Actions") or {})], self.entry, uuid)
        return {**system, "@odata.id": _link(system, "the system")}

    def _reset_of(self, system: Object) -> tuple[str, list[str] | None]:
        """Return where to send a reset and which are allowed: None where the BMC does not say."""
        action = system["Actions"][RESET]
        allowed, info = action.get("ResetType@Redfish.AllowableValues"), action.get("@Redfish.ActionInfo")
        if allowed is None and info:
            parameters = self._get(_path(info, "ActionInfo")).get("Parameters") or []
            allowed = next(
                (parameter.get("AllowableValues") for parameter in parameters if parameter.get("Name") == "ResetType"),
                None,
            )
        return _path(action.get("target"), f"target of {RESET}"), allowed

    def _get(self, path: str) -> Object:
        return self._send("GET", path)

    def _send(self, method: str, path: str, body: Object | None = None) -> Object:
        """Send one request, once. Raises Silent when nobody knows what became of it, Refused, Failed."""
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        try:
            self._connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self._connection.getresponse()
            status, reply = answer.status, _object(answer.read())
        except ssl.SSLCertVerificationError as error:
            self._connection.close()
            raise Refused(
                f"the certificate of BMC {self.entry.host} is not to be trusted ({error.verify_message}): put its "
                f"authority into ca.crt, or write insecure, in {self.entry.secret}"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise Silent(f"{self.entry.hidden(f'{method} {path}')} at {self.entry.host}: {why(error)}") from None
        self._judge(status, self.entry.hidden(f"{method} {path}"), reply)
        return reply

    def _judge(self, status: int, what: str, obj: Object) -> None:
        if status < 300:
            return
        text = f"{what} at {self.entry.host}: {self.entry.hidden(message(obj)) or f'HTTP {status}'}"
        if status in (401, 403):  # never tried again: BMCs lock accounts
            raise Refused(f"the BMC does not let user {self.entry.username} in, mend {self.entry.secret}: {text}")
        if status >= 500 or status == 429:
            raise Silent(text)
        raise Failed(f"the BMC did not take it: {text}")


def pick(systems: list[Object], entry: Entry, uuid: str) -> Object:
    """Return the system that is the node, of those that can be reset. Raises Refused for none, or when in doubt."""
    names = ", ".join(str(system.get("Id")) for system in systems)
    if entry.system:
        systems = [system for system in systems if system.get("Id") == entry.system]
    if not systems:
        raise Refused(f"BMC {entry.host} has no system {entry.system or 'that can be reset'}: it has {names or 'none'}")
    uuids = [str(system["UUID"]) for system in systems if is_told(str(system.get("UUID") or ""))]
    if is_told(uuid) and uuids:
        systems = [system for system in systems if is_among(uuid, [str(system.get("UUID") or "")])]
    if not systems:
        raise Refused(another(entry, ", ".join(uuids), uuid))
    if len(systems) > 1:
        raise Refused(f"BMC {entry.host} has several systems, name the node's as system in {entry.secret}: {names}")
    return systems[0]


def message(obj: Object) -> str:
    """What a BMC says of a failure, the extended words if there are any."""
    error = obj.get("error") if isinstance(obj.get("error"), dict) else {}
    extended = [info.get("Message") for info in error.get("@Message.ExtendedInfo") or [] if isinstance(info, dict)]
    words = [str(word) for word in extended if word]
    return " ".join(words) or str(error.get("message") or "")


def _link(holder: object, what: str) -> str:
    return _path(holder.get("@odata.id") if isinstance(holder, dict) else None, what)


def _path(value: object, what: str) -> str:
    """Return a path on this BMC. Raises Refused for anything else: the password goes nowhere else."""
    if not isinstance(value, str) or not value.startswith("/") or value.startswith("//"):
        shown = f"'{value}'" if isinstance(value, str) else type(value).__name__  # as it came: `hidden` must find it
        raise Refused(f"the BMC gives no path for {what}: {shown}; power-cycle by hand")
    return value


def _context(entry: Entry) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=entry.ca or None)
    except (ssl.SSLError, ValueError) as error:
        raise Refused(f"{entry.secret}: ca.crt of BMC {entry.host} is no certificate in PEM: {error}") from error
    if entry.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _object(body: bytes) -> Object:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
