"""Deployment: plans, roll-outs, rollbacks, and exports for other tools."""

from intop.features import Feature

FEATURE = Feature(
    own_stages={
        "apply": "intop.deploy.apply:RollOut",
        "canary": "intop.deploy.canary.stage:Switchback",
    },
    results={
        "canary": "intop.domain.canary:Canary",
        "rollout": "intop.deploy.rollout:Rollout",
    },
    commands={
        "plan": "intop.deploy.plan_command:command",
        "canary": "intop.deploy.canary.command:command",
        "apply": "intop.deploy.apply_command:command",
        "rollback": "intop.deploy.rollback_command:command",
        "export": "intop.deploy.export.command:command",
    },
)
