"""A deployment in the formats of the programs that carry it out, one module each.

That of sysctl.d is in `intop.domain.sysctl_file`, since intop writes it to hosts itself.
"""
