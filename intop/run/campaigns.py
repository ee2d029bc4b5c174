"""The campaign that a command works in: the latest of its study, or a new one."""

from intop.config.study import Study
from intop.store import Campaign, Store
from intop.version import __version__


def latest_or_new(store: Store, study: Study) -> Campaign:
    """Return the study's latest campaign, or begin its first."""
    return store.latest(study.name) or new(store, study)


def new(store: Store, study: Study) -> Campaign:
    """Begin a campaign. Earlier ones stay in the store."""
    return store.begin(study.name, seed=study.seed, tool_version=__version__)
