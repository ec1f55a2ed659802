"""Everything the paper compared, measured anew: tables and figures beside its own numbers, on one page."""
