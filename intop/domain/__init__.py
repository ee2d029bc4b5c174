"""The terms of intop: parameters, spaces, trials, statistics. No input or output."""
