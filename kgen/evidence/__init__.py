"""What is known of a kernel: verdicts against float64, and times."""
