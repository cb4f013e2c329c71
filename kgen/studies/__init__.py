"""The studies' tables and statements as data, and their verdicts on the machine at hand."""
