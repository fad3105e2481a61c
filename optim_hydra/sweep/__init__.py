"""Record the jobs of a sweep, and make a table, a page and a resumed sweep of them."""
