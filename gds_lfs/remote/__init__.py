"""Where data lives outside the clone: one protocol, a folder behind it, and the codec of the index there."""

from __future__ import annotations
