"""The campaign that a command works in: the latest of its study, or a new one."""

from intop.config.study import Study
from intop.errors import AtWorkError
from intop.store import Campaign, Store
from intop.version import __version__


def latest_or_new(store: Store, study: Study) -> Campaign:
    """Return the study's latest campaign, or begin its first."""
    return store.latest(study.name) or new(store, study)


def new(store: Store, study: Study) -> Campaign:
    """Begin a campaign. Earlier ones stay in the store.

    Raises AtWorkError while a process measures on the study's hosts, unless workers do.
    """
    latest = store.latest(study.name)
    if latest is not None and not study.workers:
        for title, activity in store.activities.of(latest).items():
            if activity.is_alive:
                raise AtWorkError(
                    f"{title}: campaign {latest.id} is at work on the same hosts: "
                    f"{activity.process} is at {activity.stage}. Wait for it, or end that process. "
                    "Run: intop progress"
                )
    return store.begin(study.name, seed=study.seed, tool_version=__version__)
