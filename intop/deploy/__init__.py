"""What is deployed: plans, roll-outs, and what hosts are left with."""
