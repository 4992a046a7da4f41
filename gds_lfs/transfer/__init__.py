"""Moving content between the local store and a remote: a queue, the remote's index, upload and download."""

from __future__ import annotations
