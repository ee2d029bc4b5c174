"""Deployment: plans, roll-outs, rollbacks, and exports for other tools."""

from intop.features import Feature

FEATURE = Feature(
    stages={
        "apply": "intop.deploy.apply:RollOut",
        "canary": "intop.deploy.canary.stage:Switchback",
    },
    results={
        "canary": "intop.domain.canary:Canary",
        "rollout": "intop.deploy.rollout:Rollout",
    },
    commands=(
        "intop.deploy.plan_command:command",
        "intop.deploy.canary.command:command",
        "intop.deploy.apply_command:command",
        "intop.deploy.rollback_command:command",
        "intop.deploy.export.command:command",
    ),
)
