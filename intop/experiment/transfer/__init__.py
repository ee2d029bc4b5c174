"""Transfer: the winner of one architecture on the other."""
