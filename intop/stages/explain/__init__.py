"""explain: which of a winner's changes its gain is made of."""
