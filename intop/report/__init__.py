"""Reports on what stores have: a campaign's page, two sides compared, history, advice."""

from intop.features import Feature

FEATURE = Feature(
    commands={
        "report": "intop.report.command:command",
        "compare": "intop.report.compare_command:command",
    },
    figures={
        "intop.domain.comparison:Compared": (
            "intop.report.compare_figures:speed_ups",
            "intop.campaign.verify.speedup_figure:architectures",
            "intop.report.compare_figures:model_errors",
            "intop.report.compare_figures:generations_needed",
            "intop.report.compare_figures:time_needed",
            "intop.report.compare_figures:rank_agreements",
        ),
        "intop.report.history_result:History": ("intop.report.history_figure:history",),
    },
)
