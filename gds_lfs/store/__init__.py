"""The repository's own object store: packs, their catalog, and what reads and writes them."""

from __future__ import annotations
