"""Experiments beside a campaign: arms under loads, in interleaved rounds."""

from intop.features import Feature

FEATURE = Feature(
    own_stages={
        "transfer": "intop.experiment.transfer.stage:Crossing",
        "contest": "intop.experiment.contest.stage:MultiArm",
        "across": "intop.experiment.across.stage:AcrossWorkloads",
        "sweep": "intop.experiment.sweep.stage:SweepAlong",
    },
    results={
        "across": "intop.domain.across:Across",
        "across-by-name": "intop.domain.across:AcrossByName",
        "compromise": "intop.domain.multi_arm:Compromise",
        "contest": "intop.domain.multi_arm:Contest",
        "crosswise": "intop.domain.multi_arm:Crosswise",
        "sweeps": "intop.domain.sweep:Sweeps",
    },
    commands={
        "contest": "intop.experiment.contest.command:command",
        "across": "intop.experiment.across.command:command",
        "sweep": "intop.experiment.sweep.command:command",
        "transfer": "intop.experiment.transfer.command:command",
    },
    figures={
        "intop.domain.across:Across": ("intop.campaign.verify.speedup_figure:by_workload",),
        "intop.domain.sweep:Sweep": ("intop.experiment.sweep.figure:curves",),
    },
)
