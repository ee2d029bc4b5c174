"""A campaign's report as one page: what stands where, as HTML, and its tables as CSV."""
