"""A certificate for servers that tests start."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def write_certificate(path: Path, *names: str) -> Path:
    """Write a key, and the certificate that it signed for itself, to one file.

    It is for these addresses, by default for 127.0.0.1.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    addresses = [x509.IPAddress(ipaddress.ip_address(one)) for one in names or ("127.0.0.1",)]
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(own, critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return path
