"""The store: campaigns, plans, trials and results in one SQL database.

SQLite by default, any other database by its URL. A trial is committed before the next one
begins, and found again by its campaign, architecture, workload, stage, place in the plan and
attempt. Nothing is ever deleted: to start again is a new campaign.
"""

from intop.store.engine import shown
from intop.store.opening import is_begun, opened, opened_to_read
from intop.store.rows import Campaign, Subject
from intop.store.store import Store

__all__ = ["Campaign", "Store", "Subject", "is_begun", "opened", "opened_to_read", "shown"]
