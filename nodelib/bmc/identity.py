"""Whose BMC it is: the UUID that it tells of its machine, compared with status.nodeInfo.systemUUID of the node.

The node's comes from SMBIOS (DMTF DSP0134, System Information), whose first three groups stand turned round since
version 2.6. Redfish tells the same in ComputerSystem.UUID, byte by byte as SMBIOS has it in memory. IPMI may tell it as
its System GUID (IPMI 2.0, 22.14), which should have all bytes turned round; most BMCs keep to another order. So each of
these orders counts as the same.
"""

from collections.abc import Sequence
from typing import NamedTuple

from nodelib.bmc.entry import Entry
from nodelib.contract.operation import Refused

# What firmware has that nobody has set: many boards were sold with each. FreeBSD and makers of inventories list them.
PRESET = (
    "03000200040005000006000700080009",
    "07090201010303010807060504030201",
    "12345678123456781234567812345678",
    "123456781234567890abcddeefaabbcc",
    "0123456789abcdef0123456789abcdef",
    "000102030405060708090a0b0c0d0e0f",
    "0102030405060708090a0b0c0d0e0f10",
    "11111111222233334444555555555555",
    "deadbeefdeadbeefdeadbeefdeadbeef",
    "4c4c454400002010802080c04f202020",  # Dell without a service tag
    "890e2d14cacd45d1ae66bc80e8bfeb0f",
    "8e275844178f44a8aceba7d7e5178c63",
    "dc698397fa544cf282c8b1b5307a6a7f",
)
# Boards that lack the other digits have these in their place.
FILLED = "ffffffffffffffffffffffff"
TRUST = "PARAMETERS.trustAddress"


class Identity(NamedTuple):
    """What is known of whose BMC it is.

    `uuid` is what it tells, "" for nothing. `proven`: it is that of the node. `named`: it is that of the entry.
    `twin`: the name of another node that has this UUID of the node, too, so that it proves nothing; "" for none.
    """

    uuid: str
    proven: bool
    named: bool
    twin: str = ""

    def beside(self, twin: str) -> "Identity":
        """The same where a node of this name has the UUID of the node, too; "" for none."""
        return Identity(self.uuid, False, False, twin) if twin and self.proven else self


def identify(spellings: Sequence[str], node_uuid: str, entry: Entry) -> Identity:
    """Compare one UUID, in the spellings that it may have, with the node's and the entry's.

    Raises Refused for the BMC of another machine.
    """
    uuids = [uuid for uuid in spellings if is_told(uuid)]
    if not uuids:
        return Identity("", False, False)
    wanted = entry.uuid or node_uuid
    if is_told(wanted) and not is_among(wanted, uuids):
        raise Refused(another(entry, uuids[0], wanted))
    return Identity(uuids[0], is_among(node_uuid, uuids), is_among(entry.uuid, uuids))


def another(entry: Entry, uuids: str, wanted: str) -> str:
    """The sentence for the BMC of another machine."""
    return (
        f"BMC {entry.host} is that of another machine: its UUID is {uuids}, the node's is {wanted}; mend "
        f"address in {entry.secret}, or put the BMC's UUID there as uuid if the two are known to differ"
    )


def require_known(identity: Identity, node_uuid: str, entry: Entry, trusted: bool) -> None:
    """Raise Refused for a BMC of which nothing tells whose it is, unless its address is trusted."""
    if identity.proven or identity.named or trusted:
        return
    lacking = "the node tells no UUID" if identity.uuid else f"BMC {entry.host} tells no UUID"
    if not identity.uuid and not is_told(node_uuid):
        lacking = f"neither BMC {entry.host} nor the node tells a UUID"
    if identity.twin:
        lacking = f"node {identity.twin} has the same UUID as this one"
    raise Refused(
        f"{lacking}, so nobody can tell whether {entry.secret} has the address of this node's BMC: look at the "
        f"address, then set {TRUST}"
    )


def is_told(uuid: str) -> bool:
    """Tell whether a UUID says anything: 32 digits, not the same byte again and again, and none that is preset.

    >>> is_told("ffffffff-ffff-ffff-ffff-ffffffffffff"), is_told("4c4c4544-0043-3010-8052-b4c04f564433")
    (False, True)
    """
    bare = _bare(uuid)
    bytes_of_it = {bare[at : at + 2] for at in range(0, len(bare), 2)}
    preset = bare.endswith(FILLED) or bare in (*PRESET, *map(_swapped, PRESET), *map(turned, PRESET))
    return len(bare) == 32 and len(bytes_of_it) > 1 and not preset


def is_among(uuid: str, spellings: Sequence[str]) -> bool:
    """Tell whether a UUID is one of these, also where one has the first three groups turned round."""
    return is_told(uuid) and _bare(uuid) in {
        order for each in spellings for order in (_bare(each), _swapped(_bare(each)))
    }


def _bare(uuid: str) -> str:
    return uuid.replace("-", "").lower()


def _swapped(bare: str) -> str:
    parts = [bare[:8], bare[8:12], bare[12:16]]
    return "".join(map(turned, parts)) + bare[16:]


def turned(digits: str) -> str:
    """Return hex digits with their bytes turned round.

    >>> turned("4c4c4544")
    '44454c4c'
    """
    return "".join(reversed([digits[at : at + 2] for at in range(0, len(digits), 2)]))
