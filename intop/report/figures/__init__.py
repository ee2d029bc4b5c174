"""Results as figures. The only package that imports matplotlib; draws, and computes nothing."""
