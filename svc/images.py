"""Images that are sent as they are, and not as addresses."""

from __future__ import annotations

from functools import cached_property


class DataUri(str):
    """A checked base64 data URI: visible ASCII, which JSON holds as it is."""

    @cached_property
    def utf8(self) -> bytes:
        """Its bytes, made once for all calls that send them."""
        return self.encode("ascii")
