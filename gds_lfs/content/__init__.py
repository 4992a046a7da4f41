"""What content is called and how it is cut: ids, pointers, manifests, chunks."""

from __future__ import annotations
