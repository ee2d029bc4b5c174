"""What a plan rests on that is no longer as it was when the plan was made."""

from collections.abc import Collection, Iterator

from intop.domain.applied import Applied
from intop.domain.deployment import Deployment
from intop.domain.plan import HostPlan, Plan, PlannedKey


def changes(then: Plan, now: Plan) -> list[str]:
    """A line for each difference, with both values. `now` is the same plan made again.

    A host that has by now all that is planned is no difference: nothing is left to be done there.
    """
    title = then.deployment.title
    lines = [f"{title}: {line}" for line in _deployments(then.deployment, now.deployment)]
    before, names = ([answer.name for answer in plan.hosts] for plan in (then, now))
    if before != names:
        lines.append(_differs(f"{title}: load balancers", ", ".join(before), ", ".join(names)))
        return lines
    for earlier, answer in zip(then.hosts, now.hosts, strict=True):
        was, host = earlier.said, answer.said
        if host is None:
            lines.append(answer.error)
        elif was is None:
            lines.append(f"{answer.name}: could not be asked then, and can be now")
        elif not host.has_it:
            lines += [f"{answer.name}: {line}" for line in _hosts(was, host)]
    return lines


def _differs(what: str, then: str, now: str) -> str:
    return f"{what}: {then or 'empty'} in the plan, {now or 'empty'} now"


def _deployments(then: Deployment, now: Deployment) -> Iterator[str]:
    for name in ("study", "campaign", "started_at", "workload", "origin"):
        one, other = str(getattr(then, name)), str(getattr(now, name))
        if one != other:
            yield _differs(name, one, other)
    for what, one_side, other_side in (
        ("set to", then.values, now.values),
        (
            "the default",
            {change.key: change.default for change in then.changes},
            {change.key: change.default for change in now.changes},
        ),
    ):
        for key in dict.fromkeys([*one_side, *other_side]):
            one, other = one_side.get(key, "nothing"), other_side.get(key, "nothing")
            if one != other:
                yield _differs(f"{key}: {what}", one, other)


def _hosts(then: HostPlan, now: HostPlan) -> Iterator[str]:
    for name in ("machine", "kernel", "file"):
        one, other = getattr(then, name), getattr(now, name)
        if one != other:
            yield _differs(name, one, other)
    keys = {key.change.key: key for key in now.keys}
    for key in then.keys:
        if key.change.key in keys:
            yield from _keys(key, keys[key.change.key])
    one_side, other_side = ({edit.path: edit.diff for edit in host.edits} for host in (then, now))
    for path in dict.fromkeys([*one_side, *other_side]):
        if one_side.get(path) != other_side.get(path):
            yield f"{path}: other lines would change there than in the plan"
    yield from _applied(then.applied, now.applied, planned=keys)


def _keys(then: PlannedKey, now: PlannedKey) -> Iterator[str]:
    name = then.change.key
    if then.now != now.now:
        yield _differs(name, *("no value" if v is None else v for v in (then.now, now.now)))
    for what, one, other in (
        ("what is in its way", then.obstacle, now.obstacle),
        ("what else sets it", _rivals(then), _rivals(now)),
        ("our file", _filed(then), _filed(now)),
    ):
        if one != other:
            yield _differs(f"{name}: {what}", one or "nothing", other or "nothing")


def _rivals(key: PlannedKey) -> str:
    """Who sets it to something else, and whether that wins; what sets the same is no matter."""
    return ", ".join(
        f"{rival.setting.place} to {rival.setting.value} ({rival.wins})" for rival in key.rivals
    )


def _filed(key: PlannedKey) -> str:
    return "" if key.filed is None else f"{key.filed.place} has {key.filed.value}"


def _applied(then: Applied | None, now: Applied | None, planned: Collection[str]) -> Iterator[str]:
    """Differences of what an apply has left; the values of `planned` keys are told elsewhere."""
    one, other = (_record(applied) for applied in (then, now))
    if one != other:
        yield _differs("applied", one, other)
    if then is None or now is None:
        return
    if then.file_is != now.file_is:
        yield _differs(then.file or now.file, str(then.file_is), str(now.file_is))
    keys = {key.key: key for key in (*now.keys, *now.directives)}
    for key in (*then.keys, *then.directives):
        found = keys.get(key.key)
        for name in ("before", "left") if key.key in planned else ("before", "left", "now"):
            if found is not None and getattr(key, name) != getattr(found, name):
                what = f"{key.key}, which an apply has left: {name}"
                yield _differs(what, getattr(key, name), getattr(found, name))


def _record(applied: Applied | None) -> str:
    if applied is None:
        return "nothing"
    keys = ", ".join(sorted(applied.values))
    return f"{applied.title}, since {applied.since} ({keys})"
