"""The certificates and kubeconfigs of one control plane: a CA of its own, whose key never leaves the folder."""

import datetime
import ipaddress
import json
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = datetime.timedelta(days=7)
USAGES = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]


class Keys:
    """A certificate authority in `folder`: ca.crt, server.crt and server.key, service-accounts.key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("remediator tests", ())
        authority = _certificate(self._name, self._name, self._key.public_key())
        authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.ca_file = folder / "ca.crt"
        self.ca_file.write_bytes(_pem(authority.sign(self._key, hashes.SHA256())))
        self.accounts = folder / "service-accounts.key"
        _keep(self.accounts, rsa.generate_private_key(65537, 2048))

    def issue(self, user: str, groups: Sequence[str] = (), *, addresses: Sequence[str] = ()) -> tuple[Path, Path]:
        """A certificate for a user in groups, or for a server at IP addresses: the files of certificate and key."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _certificate(_name(user, groups), self._name, key.public_key())
        made = made.add_extension(x509.ExtendedKeyUsage(USAGES), critical=False)
        if addresses:
            names = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        stem = user.replace(":", "-").replace("/", "-")
        certificate, secret = self.folder / f"{stem}.crt", self.folder / f"{stem}.key"
        certificate.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))
        _keep(secret, key)
        return certificate, secret

    def kubeconfig(self, url: str, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig file with which `user` reaches the server at `url`."""
        certificate, key = self.issue(user, groups)
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tests",
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": user}}],
            "clusters": [{"name": "tests", "cluster": {"server": url, "certificate-authority": str(self.ca_file)}}],
            "users": [{"name": user, "user": {"client-certificate": str(certificate), "client-key": str(key)}}],
        }
        path = certificate.with_suffix(".kubeconfig")
        path.write_text(json.dumps(config))
        path.chmod(0o600)
        return path


def _name(user: str, groups: Sequence[str]) -> x509.Name:
    """Kubernetes reads the user from the common name and the groups from the organizations."""
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + LIFE)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _keep(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
