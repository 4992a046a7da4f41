"""Checking that a dataset loads: its functions, its splits, its first samples. Free of git."""

from __future__ import annotations
