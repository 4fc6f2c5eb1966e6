"""A certificate authority of its own and a serving certificate for loopback, made anew for each listener."""

from datetime import timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from remediator.clock import SYSTEM

_LIFE = timedelta(days=3650)


class Files(NamedTuple):
    """Where the PEM files are."""

    ca: Path
    certificate: Path
    key: Path


def make(folder: Path) -> Files:
    """Write a CA certificate, and a certificate and key for 127.0.0.1 and localhost signed by it."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca = _builder("embedded-ca", "embedded-ca", ca_key.public_key())
    ca = ca.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    ca = ca.add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))])
    own = _builder("kube-apiserver", "embedded-ca", key.public_key()).add_extension(names, critical=False)
    own = own.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
    files = Files(folder / "ca.crt", folder / "server.crt", folder / "server.key")
    files.ca.write_bytes(_pem(ca, ca_key))
    files.certificate.write_bytes(_pem(own, ca_key))
    files.key.touch(mode=0o600)
    files.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(subject: str, issuer: str, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    # Certificates are judged by the real clock, whatever the cluster's clock says.
    now = SYSTEM.wall()
    builder = x509.CertificateBuilder().subject_name(_name(subject)).issuer_name(_name(issuer)).public_key(public)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + _LIFE)


def _pem(builder: x509.CertificateBuilder, signer: ec.EllipticCurvePrivateKey) -> bytes:
    return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
