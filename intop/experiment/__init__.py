"""Experiments beside a campaign: arms under loads, in interleaved rounds."""

from intop.features import Feature

FEATURE = Feature(
    stages={
        "transfer": "intop.experiment.transfer.stage:Crossing",
        "contest": "intop.experiment.contest.stage:MultiArm",
        "sweep": "intop.experiment.sweep.stage:SweepAlong",
    },
    results={
        "compromise": "intop.domain.multi_arm:Compromise",
        "contest": "intop.domain.multi_arm:Contest",
        "crosswise": "intop.domain.multi_arm:Crosswise",
        "sweeps": "intop.domain.sweep:Sweeps",
    },
    commands=(
        "intop.experiment.contest.command:command",
        "intop.experiment.sweep.command:command",
        "intop.experiment.transfer.command:command",
    ),
    figures={"intop.domain.sweep:Sweep": ("intop.experiment.sweep.figure:curves",)},
)
