"""The certificates that we make ourselves: an authority, what we serve with, and what callers show. Pure but for keys.

The names in `Mapping[str, bytes]` are those of a Secret of ours: ca.crt, ca.key, tls.crt and tls.key, all of them PEM.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SKEW = timedelta(hours=1)  # a caller whose clock is that far behind takes a new certificate, too
CA_LIFE, CA_LEFT = timedelta(days=3650), timedelta(days=730)
LIFE, LEFT = timedelta(days=90), timedelta(days=30)
AUTHORITY = "remediator"
REMEDY = (
    "see whether somebody else writes there; to make all of it anew, delete this Secret and apply "
    "deploy/endpoints.yaml; every caller needs new files then"
)
_USAGE = dict.fromkeys(
    (
        *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
        *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
    ),
    False,
)


def renewed(held: Mapping[str, bytes], names: Iterable[str], now: datetime) -> dict[str, bytes] | None:
    """What the Secret should hold for a server of these DNS names and addresses; None where it does already.

    A certificate that is not valid yet is kept: the clock of whoever made it, or ours, is wrong, and two replicas that
    differ would take turns. A new certificate of the authority has its old key and name, so that what it has signed
    stays good, and callers that have only the old one trust us until that ends. Raises ValueError where the Secret
    holds something that is not what we write: making it anew would lock every caller out.
    """
    if not any(held.values()):
        return _served(_authority(ec.generate_private_key(ec.SECP256R1()), now), names, now)
    try:
        ca, ca_key = x509.load_pem_x509_certificate(held["ca.crt"]), _key(held["ca.key"])
        leaf, key = x509.load_pem_x509_certificate(held["tls.crt"]), _key(held["tls.key"])
        leaf.verify_directly_issued_by(ca)
        if ca.public_key() != ca_key.public_key() or leaf.public_key() != key.public_key():
            raise ValueError("a key does not belong to its certificate")
    except KeyError as missing:
        raise ValueError(f"{missing} is missing; {REMEDY}") from None
    except (ValueError, TypeError, InvalidSignature) as error:
        raise ValueError(f"not certificates of ours ({error or type(error).__name__}); {REMEDY}") from None
    if ca.not_valid_after_utc - now < CA_LEFT:
        return _served(_authority(ca_key, now), names, now)
    if leaf.not_valid_after_utc - now < LEFT or not set(names) <= _names(leaf):
        return _served({name: held[name] for name in ("ca.crt", "ca.key")}, names, now)
    return None


def for_caller(held: Mapping[str, bytes], caller: str, life: timedelta, now: datetime) -> dict[str, bytes]:
    """tls.crt and tls.key with which a caller of this common name is let in, and the ca.crt that it trusts."""
    made = _leaf(held, caller, (), ExtendedKeyUsageOID.CLIENT_AUTH, life, now)
    return {"ca.crt": held["ca.crt"], **made}


def ends(pem: bytes) -> datetime:
    """When the first certificate of these ends. Raises ValueError."""
    return x509.load_pem_x509_certificate(pem).not_valid_after_utc


def _served(authority: Mapping[str, bytes], names: Iterable[str], now: datetime) -> dict[str, bytes]:
    served = _leaf(authority, AUTHORITY, names, ExtendedKeyUsageOID.SERVER_AUTH, LIFE, now)
    return {**authority, **served}


def _authority(key: ec.EllipticCurvePrivateKey, now: datetime) -> dict[str, bytes]:
    name, constraints = _named(AUTHORITY), x509.BasicConstraints(ca=True, path_length=0)
    usage = x509.KeyUsage(**{**_USAGE, "key_cert_sign": True, "crl_sign": True})
    made = _begun(name, name, key, CA_LIFE, now)
    made = made.add_extension(constraints, critical=True).add_extension(usage, critical=True)
    return {"ca.crt": _pem(made.sign(key, hashes.SHA256())), "ca.key": _pem(key)}


def _leaf(
    authority: Mapping[str, bytes],
    common: str,
    names: Iterable[str],
    purpose: x509.ObjectIdentifier,
    life: timedelta,
    now: datetime,
) -> dict[str, bytes]:
    ca, ca_key = x509.load_pem_x509_certificate(authority["ca.crt"]), _key(authority["ca.key"])
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.KeyUsage(**{**_USAGE, "digital_signature": True}), True),
        (x509.ExtendedKeyUsage([purpose]), False),
        (identifier, False),
    ]
    if alternatives := [_alternative(name) for name in names]:
        extensions.append((x509.SubjectAlternativeName(alternatives), False))
    made = _begun(_named(common), ca.subject, key, life, now)
    for extension, critical in extensions:
        made = made.add_extension(extension, critical)
    return {"tls.crt": _pem(made.sign(ca_key, hashes.SHA256())), "tls.key": _pem(key)}


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, life: timedelta, now: datetime
) -> x509.CertificateBuilder:
    public = key.public_key()
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
    made = made.serial_number(x509.random_serial_number()).not_valid_before(now - SKEW).not_valid_after(now + life)
    return made.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)


def _named(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _names(certificate: x509.Certificate) -> set[str]:
    try:
        held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {str(name.value) for name in held}


def _key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("a key is not of the kind that we make")
    return key


def _pem(what: x509.Certificate | ec.EllipticCurvePrivateKey) -> bytes:
    if isinstance(what, x509.Certificate):
        return what.public_bytes(serialization.Encoding.PEM)
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return what.private_bytes(serialization.Encoding.PEM, *plain)
