"""Which campaign a command works in: the latest one of its study, or a new one."""

from intop.config.study import Study
from intop.store import Campaign, Store
from intop.version import __version__


def latest_or_new(store: Store, study: Study) -> Campaign:
    """The study's latest campaign; the first one when there is none yet."""
    return store.latest(study.name) or new(store, study)


def new(store: Store, study: Study) -> Campaign:
    """A campaign of its own. Earlier ones stay in the store."""
    return store.begin(study.name, seed=study.seed, tool_version=__version__)
