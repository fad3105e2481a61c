"""Record, read and report what the jobs of a sweep did."""
