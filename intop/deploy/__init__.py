"""Deployment: plans, roll-outs, and the values that hosts are left with."""
