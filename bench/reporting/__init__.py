"""The sections of RESULTS.md, one module a kind of result file."""
