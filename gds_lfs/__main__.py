"""`python -m gds_lfs`: the command, where its script is not at hand."""

from __future__ import annotations

from gds_lfs.cli import main

if __name__ == "__main__":
    main()
