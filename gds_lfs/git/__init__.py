"""git as it really is: its repository, config, attributes, index, hooks and filter protocol."""

from __future__ import annotations
