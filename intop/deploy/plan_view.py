"""A plan: what deploying changes, to be read or for a pull request."""

from collections.abc import Iterator, Mapping

from intop.deploy.result import HostPlan, Plan, PlannedKey, Rival
from intop.document.columns import Column, texts
from intop.document.model import Notes, Section, Table, Verbatim
from intop.domain.deployment import Change, Origin
from intop.domain.nginx.directive import page_of
from intop.domain.nginx.permitted import is_directive
from intop.domain.parameter import PARTNERS
from intop.domain.persistent import TUNED_LAST, Setting
from intop.domain.stats import Interval
from intop.sentences import across_sentence, kept_sentence, sweep_sentence, worse_here
from intop.words import counted

NOTHING = "no verdict is a gain: there is nothing to deploy"
COLUMNS = (
    Column("key", "key"),
    Column("now", "before"),
    Column("then", "after"),
    Column("why", "remark"),
    *texts("risk", "to do"),
)


def sections(plans: Mapping[str, Plan | None]) -> list[Section]:
    """Return a section for each architecture: its deployment, changes by host, its keys."""
    return [
        Section(title=f"{arch}: {NOTHING}") if plan is None else _section(plan)
        for arch, plan in plans.items()
    ]


def _section(plan: Plan) -> Section:
    deployment = plan.deployment
    mechanisms = (f"{c.key}: {c.mechanism} ({_document(c)})" for c in deployment.changes)
    return Section(
        title=f"{deployment.title}: {deployment.verdict.gain}",
        blocks=(
            Notes(tuple(_origin(plan))),
            *(_host(plan, number) for number in range(len(plan.hosts))),
            Section(title="What these keys do", blocks=(Notes(tuple(mechanisms)),), folded=True),
        ),
    )


def _host(plan: Plan, number: int) -> Section:
    answer = plan.hosts[number]
    if answer.result is None:
        return Section(
            title=f"{answer.name}: could not be asked", blocks=(Notes((f"ERROR  {answer.error}",)),)
        )
    host = answer.result
    rows = tuple(
        (
            key.change.key,
            _now(key),
            key.change.value,
            worth(key.change, plan.deployment.origin, plan.deployment.verdict.judged_by),
            key.change.risk,
            _to_do(key),
        )
        for key in host.keys
    )
    lines = (*_step(plan, host), *_remarks(host, persist=plan.persist))
    edits = (
        Section(title=f"in {edit.path}", blocks=(Verbatim(tuple(edit.diff.split("\n"))),))
        for edit in host.edits
    )
    return Section(
        title=f"{answer.name}: {_counts(host)}",
        blocks=(Table(columns=COLUMNS, rows=rows), Notes(lines), *edits),
    )


def _document(change: Change) -> str:
    """Return the place of a key or a directive in the documentation of the kernel or of nginx."""
    if is_directive(change.key):
        return page_of(change.document)
    path = change.document.removeprefix("Documentation/")
    if path == change.document or not path.endswith(".rst"):
        return change.document
    return f"{change.document}, https://docs.kernel.org/{path.removesuffix('.rst')}.html"


def _origin(plan: Plan) -> Iterator[str]:
    """Return the source of the values, the gain that they keep, and the use of the plan."""
    deployment = plan.deployment
    count = len(deployment.changes)
    origin = "the whole winner"
    if deployment.origin == "smallest set":
        origin = "the smallest set that was found to keep the gain"
    if deployment.origin == "baseline":
        origin = f"the baseline {deployment.verdict.origin}"
    yield (
        f"{counted(count, 'key')}, {origin}, of study {deployment.study}, campaign "
        f"{deployment.campaign} of {deployment.started_at[:10]}"
    )
    if deployment.kept is not None:
        yield kept_sentence(deployment.kept, deployment.verdict.judged_by)
    if deployment.verdict.causes is not None:
        yield f"why, by what the kernel counted: {deployment.verdict.causes.summary}"
    if deployment.instead:
        yield f"not fewer keys: {deployment.instead}"
    yield from _doubts(plan)
    if plan.for_review:
        yield "for review only: what is applied is measured first, on a cluster of the study"


def _doubts(plan: Plan) -> Iterator[str]:
    """Return what the latency doesn't tell: guardrails, and other loads."""
    deployment = plan.deployment
    verdict = deployment.verdict
    if verdict.broken:
        yield f"COSTS  {verdict.costs}: --accept-costs was said"
    if verdict.unclear:
        yield f"NOTE  {verdict.doubts}"
    if not verdict.guardrails:
        yield f"NOTE  the gain is one of {verdict.judged_by} alone: no guardrails were looked at"
    if not deployment.sweeps:
        yield (
            "NOTE  it was measured at the study's rate only: intop sweep measures the winner at "
            "others"
        )
    whole = "the whole winner " if deployment.origin == "smallest set" else ""
    yield from (f"{whole}{sweep_sentence(sweep)}" for sweep in deployment.sweeps)
    if deployment.across is not None:
        mark = "NOTE  " if deployment.across.worse else ""
        yield f"{mark}{whole}{across_sentence(deployment.across)}; {worse_here(deployment.across)}"


def worth(change: Change, origin: Origin, judged_by: str) -> str:
    """Return the measured effect of a change, by the comparison nearest to the deployment.

    Such as: without it P99 is 3.46 times higher (1.55 to 7.70).
    """
    contribution = change.contribution
    if contribution is None:
        return "not measured by itself (intop explain does that)"
    companions = [key for key in contribution.keys if key != change.key]
    it = f"it and {', '.join(companions)}" if companions else "it"
    is_smallest = origin == "smallest set"
    if contribution.missed is not None and (
        is_smallest or not (contribution.left_out or contribution.alone)
    ):
        beside = "" if is_smallest else "the smallest set's "
        return f"without {it} {beside}{judged_by} is {_times(contribution.missed, 'higher')}"
    if contribution.left_out is not None:
        times = _times(contribution.left_out, "higher")
        if origin == "winner":
            return f"without {it} {judged_by} is {times}"
        return f"without {it} the whole winner's {judged_by} is {times}"
    if contribution.alone is not None:
        return f"{it} alone: {judged_by} is {_times(contribution.alone, 'lower')}"
    return "not measured by itself"


def _times(ratio: Interval, word: str) -> str:
    """Return such as: 3.46 times higher (1.55 to 7.70)."""
    if ratio.value < 1:
        ratio = ratio.inverse
        word = {"higher": "lower", "lower": "higher"}[word]
    unclear = ", so it may be nothing" if ratio.low <= 1 <= ratio.high else ""
    return f"{ratio.value:.2f} times {word} ({ratio.limits}{unclear})"


def _counts(host: HostPlan) -> str:
    """Return such as: 2 keys to change, 1 is so already, 1 conflict."""
    parts = [f"{counted(len(host.of('changes')), 'key')} to change"]
    if already := host.of("is so"):
        parts.append(f"{len(already)} so already")
    if impossible := host.of("impossible"):
        parts.append(f"{len(impossible)} impossible")
    if host.conflicts:
        parts.append(counted(host.conflicts, "conflict"))
    return ", ".join(parts)


def _to_do(key: PlannedKey) -> str:
    return {"changes": "set", "is so": "nothing", "impossible": "can't be"}[key.outcome]


def _now(key: PlannedKey) -> str:
    if key.now is None:
        return "none"
    return key.now or "empty"


def _step(plan: Plan, host: HostPlan) -> Iterator[str]:
    """Return the steps of apply on a host, or all that prevents them."""
    yield from (f"IMPOSSIBLE  {why}" for why in host.problems)
    if host.problems or host.obstacles or plan.for_review:
        return
    if host.has_it:
        yield "apply: it has these values already, and is left alone"
        return
    if host.lacks_file:
        yield f"apply: it has these values already; write {host.file} for later boots"
        return
    written = ", ".join(filter(None, [host.file, *(edit.path for edit in host.edits)]))
    stays = f"write {written}" if plan.persist else "until a reboot"
    yield (
        f"apply: measure them against its own values in up to {plan.rounds} rounds; if that "
        f"is a gain, set {counted(len(host.keys), 'key')}, {stays}"
    )


def _remarks(host: HostPlan, *, persist: bool) -> Iterator[str]:
    """Conflicts, obstacles and notes, what keeps a value from lasting first."""
    if any(key.rivals for key in host.keys):
        unless = "" if persist else ", once it is written: intop apply --persist"
        yield f"our file is {host.file}{unless}"
    for key in host.keys:
        yield from (_conflict(key, rival) for rival in key.rivals)
    for key in host.keys:
        name = key.change.key
        if key in host.obstacles:
            yield f"IMPOSSIBLE  {name}: {key.obstacle}"
        if not key.is_as_measured and key.own is not None:
            yield (
                f"NOTE  {name}: the gain was measured against {key.change.default}, and this host "
                f"has {key.own or 'empty'}: what it gains here was not measured"
            )
        for setting in key.agreeing:
            yield f"NOTE  {name}: {setting.place} sets the same value already"
        if key.filed is not None:
            yield f"NOTE  {name}: {_filed(key, key.filed, host)}"
    yield from (f"NOTE  {line}" for line in host.kept)
    yield from (f"NOTE  {note}" for note in host.notes)


def _filed(key: PlannedKey, filed: Setting, host: HostPlan) -> str:
    """Return the value in a file of our file's name, and whether an apply wrote it."""
    if host.applied is None or host.applied.file != host.file:
        return f"{filed.place} sets {filed.value}, and no apply wrote that file"
    has = f"{filed.place}, of an earlier deployment, has"
    if filed.value == key.change.value:
        return f"{has} this value already"
    return f"{has} {filed.value}, and will be replaced"


def _conflict(key: PlannedKey, rival: Rival) -> str:
    """Return who sets a key to something else, who wins, and the remedy."""
    setting, value = rival.setting, key.change.value
    what = _what(rival)
    if setting.key == PARTNERS.get(key.change.key):
        what, value = f"sets its partner {setting.key} to {setting.value}", "0"
    words = f"{key.change.key}: {setting.place} {what}"
    if rival.wins == "never":
        return f"NOTE  {words}; our file comes after it and wins: nothing to do"
    if rival.wins == "on reload":
        return (
            f"CONFLICT  {words}; our file wins at boot, but the next sysctl --system reads that "
            f"after it: take the line out, or let it set {value}"
        )
    if rival.effect in ("drops", "refused"):
        return f"CONFLICT  {words}, so ours is not set: take the line out"
    if rival.effect == "unknown":
        why = setting.doubt or "what the kernel makes of that is not known"
        words = f"{words} at boot after our file: {why}"
        return f"CONFLICT  {words}. Take the line out, or let it set {value}"
    if setting.is_tuned and setting.turn[0] == TUNED_LAST:
        return (
            f"CONFLICT  {words} at boot after our file, and wins: take it out of the profile, or "
            f"let it set {value}"
        )
    if setting.is_tuned:
        return (
            f"CONFLICT  {words} at boot after our file, and wins (reapply_sysctl is off): take it "
            f"out of the profile, or deploy as a TuneD profile (intop export --format tuned)"
        )
    return (
        f"CONFLICT  {words} at boot after our file, and wins: take the line out, or let it set "
        f"{value}"
    )


def _what(rival: Rival) -> str:
    """Return the effect of a line on a key."""
    text = rival.setting.value
    if rival.wins == "never":
        return f"sets {text or 'nothing'}"
    match rival.effect:
        case "drops":
            return "makes systemd drop the key at boot, after our file"
        case "refused":
            return (
                f"says {text!r} after our file, which the kernel refuses; systemd writes only the "
                "last line of a key"
            )
        case "unknown":
            return f"says {text!r}"
        case "may set":
            return f"sets {rival.value}, if the kernel takes that,"
        case "sets":
            return (
                f"sets {text}" if text == rival.value else f"sets {text}, which is {rival.value},"
            )
