"""The campaign: the stages of `tune`, from the pilot to the verdict. Each has a folder."""

from intop.features import Feature

FEATURE = Feature(
    stages={
        "pilot": "intop.campaign.pilot.stage:FindDuration",
        "replicas": "intop.run.replicas:Replicas",
        "screen": "intop.campaign.screen.stage:Screen",
        "collect": "intop.campaign.collect.stage:Collect",
        "refine": "intop.campaign.refine.stage:Refine",
        "train": "intop.campaign.train.stage:Train",
        "search": "intop.campaign.search.stage:GlobalSearch",
        "pick": "intop.campaign.verify.pick:Pick",
        "trim": "intop.campaign.verify.trim:Trim",
        "judge": "intop.campaign.verify.judge:Judge",
    },
    results={
        "agreement": "intop.domain.agreement:Agreement",
        "decisions": "intop.domain.refined:Decisions",
        "front": "intop.campaign.search.tradeoff:Front",
        "pilot": "intop.domain.pilot:Pilot",
        "probe": "intop.domain.probing:Probe",
        "ranking": "intop.domain.ranking:Ranking",
        "refined": "intop.domain.refined:Refined",
        "refusals": "intop.domain.baseline:Refusals",
        "search": "intop.domain.search:Search",
        "training": "intop.domain.training:Training",
        "trim-order": "intop.domain.trimmed:TrimOrder",
        "trimmed": "intop.domain.trimmed:Trimmed",
        "verdict": "intop.domain.verdict:Verdict",
    },
    commands={
        "pilot": "intop.campaign.pilot.command:command",
        "screen": "intop.campaign.screen.command:command",
        "collect": "intop.campaign.collect.command:command",
        "refine": "intop.campaign.refine.command:command",
        "train": "intop.campaign.train.command:command",
        "search": "intop.campaign.search.command:command",
        "verify": "intop.campaign.verify.command:command",
    },
    figures={
        "intop.domain.replicates:Collected": ("intop.campaign.collect.figure:collected",),
        "intop.domain.sides:Latencies": ("intop.campaign.verify.percentiles_figure:percentiles",),
        "intop.domain.ranking:RankAgreement": ("intop.campaign.screen.figure:agreement",),
        "intop.domain.ranking:Ranking": ("intop.campaign.screen.figure:importance",),
        "intop.domain.refined:Refined": ("intop.campaign.search.figure:refinement",),
        "intop.domain.search:Search": ("intop.campaign.search.figure:convergence",),
        "intop.campaign.search.tradeoff:Tradeoff": ("intop.campaign.search.pareto_figure:front",),
        "intop.domain.training:Training": (
            "intop.campaign.train.figure:predictions",
            "intop.campaign.train.figure:learned_components",
        ),
    },
)
