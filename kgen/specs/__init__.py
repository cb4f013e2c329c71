"""What a kernel is: the spec, its rules, the named versions, and how they are written."""
