"""What intop talks about: parameters, spaces, trials, statistics. No input or output."""
