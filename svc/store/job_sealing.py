"""Seals lines of files that belong to one job, with the operator's master key."""

from __future__ import annotations

from svc.store.errors import SpoolLost
from svc.store.sealing import Sealer


class JobSealing:
    """Each line is sealed with its job and its label, so that none can take another's place."""

    def __init__(self, job_id: str, sealer: Sealer, salt: bytes) -> None:
        """Only `Spool.sealing` calls this."""
        self._job_id, self._sealer, self._salt = job_id, sealer, salt

    def seal(self, label: str, line: bytes) -> bytes:
        """What is kept of a line of UTF-8; it has no line break."""
        return self._sealer.seal(f"{self._head(label)}{line.decode()}", self._salt)

    def open(self, label: str, kept: bytes) -> bytes:
        """The line that was sealed under this label. Raises `SpoolLost` for anything else."""
        text, head = self._sealer.open(kept, self._salt) or "", self._head(label)
        if not text.startswith(head):
            raise SpoolLost(
                "its calls or replies beside the database are damaged, or were sealed with another "
                "master key"
            )
        return text[len(head) :].encode()

    def _head(self, label: str) -> str:
        return f"{self._job_id} {label}\n"
