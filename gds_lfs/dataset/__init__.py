"""Datasets declared in `index.py`: the declarations, the child that runs them, the database, the reconciler."""

from __future__ import annotations
