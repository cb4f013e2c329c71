"""What users take away: files with their reports, and scripts that run without kgen."""
