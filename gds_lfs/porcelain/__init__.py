"""One verb per git event or command, built from the floors below; no click here."""

from __future__ import annotations
