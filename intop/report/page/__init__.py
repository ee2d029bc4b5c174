"""A campaign's report as one page: what stands where in it."""
