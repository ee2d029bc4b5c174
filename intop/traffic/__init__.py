"""Traffic of one's own: a workload from access logs."""

from intop.features import Feature

FEATURE = Feature(
    commands={
        "workload": "intop.traffic.command:group",
    },
    figures={"intop.traffic.agreement:Agreement": ("intop.traffic.figure:mixes",)},
)
