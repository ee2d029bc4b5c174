"""A plan: what deploying changes, as text to read or as Markdown for a pull request."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping

from rich.console import RenderableType
from rich.text import Text

from intop.domain.deployment import Change, Deployment, Origin
from intop.domain.parameter import PARTNERS
from intop.domain.plan import HostPlan, Plan, PlannedKey, Rival
from intop.domain.stats import RatioInterval
from intop.report.explain import kept_sentence
from intop.report.markdown import code, escaped, table
from intop.report.numbers import counted
from intop.report.text import bold, new_table

WIDTH = 100
"""Characters of a line of text."""
WHY_WIDTH = 46
"""Characters of a line below a key."""
LONG = 24
"""Characters of two values from which on they don't stand in one line."""
NOTHING = "no significant gain: keep the defaults, there is nothing to deploy"


# Text ---------------------------------------------------------------------------------------------


def as_text(found: Mapping[str, Plan | None]) -> list[RenderableType]:
    """Each architecture: what it is about, each host's changes, and what its keys do."""
    parts: list[RenderableType] = []
    for arch, plan in found.items():
        if plan is None:
            parts.append(Text(f"{arch}: {NOTHING}\n"))
            continue
        parts += [bold(_title(plan.deployment)), _wrapped(_origin(plan))]
        for number in range(len(plan.hosts)):
            parts += ["", *_host(plan, number)]
        parts += ["", _explained(plan.deployment), ""]
    return parts


def _host(plan: Plan, number: int) -> Iterator[RenderableType]:
    answer = plan.hosts[number]
    if answer.said is None:
        yield Text(f"ERROR  {answer.error}")
        return
    host = answer.said
    yield bold(f"{answer.name}: {_counts(host)}")
    rows = new_table(("key", "left"), ("now -> then", "left"), ("to do", "left"), ("risk", "left"))
    for key in host.keys:
        worthy = worth(key.change, plan.deployment.origin)
        why = "\n".join(textwrap.wrap(worthy, WHY_WIDTH))
        told = f"{key.change.key}\n{textwrap.indent(why, '  ')}"
        rows.add_row(*(Text(t) for t in (told, _values(key), _to_do(key), key.change.risk)))
    yield rows
    yield _wrapped([*_step(plan, number, host), *_remarks(host, persist=plan.persist)])


def _wrapped(lines: Iterable[str]) -> Text:
    """Lines that are short enough; a path or command in them is never broken."""
    wrapped = [
        textwrap.fill(
            line,
            WIDTH,
            initial_indent="  ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines
    ]
    return Text("\n".join(wrapped))


def _explained(deployment: Deployment) -> Text:
    """What each key does, once for all hosts."""
    return _wrapped(
        f"{change.key}: {change.mechanism} ({change.document})" for change in deployment.changes
    )


def _values(key: PlannedKey) -> str:
    now, then = _now(key), key.change.value
    if key.outcome == "is so":
        return then
    return f"{now}\n-> {then}" if len(now + then) > LONG else f"{now} -> {then}"


# Markdown -----------------------------------------------------------------------------------------


def as_markdown(found: Mapping[str, Plan | None]) -> str:
    """In GitHub's Markdown: a table for each host, and what keys do behind a fold."""
    blocks: list[str] = []
    for arch, plan in found.items():
        if plan is None:
            blocks.append(f"## {arch}\n\n{NOTHING[:1].upper()}{NOTHING[1:]}.")
            continue
        blocks.append(f"## {escaped(_title(plan.deployment))}")
        blocks.append("\n".join(f"- {escaped(line)}" for line in _origin(plan)))
        for number in range(len(plan.hosts)):
            blocks += _markdown_host(plan, number)
        lines = "\n".join(
            f"- {code(change.key)}: {escaped(change.mechanism)} ({_document(change)})"
            for change in plan.deployment.changes
        )
        summary = "<summary>What these keys do</summary>"
        blocks.append(f"<details>\n{summary}\n\n{lines}\n\n</details>")
    return "\n\n".join(blocks)


def _markdown_host(plan: Plan, number: int) -> Iterator[str]:
    answer = plan.hosts[number]
    if answer.said is None:
        yield f"### {escaped(answer.name)}: could not be asked"
        yield f"- {escaped(answer.error)}"
        return
    host = answer.said
    yield f"### {escaped(answer.name)}: {escaped(_counts(host))}"
    columns = tuple((name, "left") for name in ("key", "now", "then", "why", "risk", "to do"))
    yield table(
        columns,
        [
            (
                code(key.change.key),
                code(_now(key)),
                code(key.change.value),
                escaped(worth(key.change, plan.deployment.origin)),
                key.change.risk,
                _to_do(key),
            )
            for key in host.keys
        ],
    )
    lines = [*_step(plan, number, host), *_remarks(host, persist=plan.persist)]
    yield "\n".join(f"- {escaped(line)}" for line in lines)


def _document(change: Change) -> str:
    """A link to the kernel's documentation, where the key has a document of it."""
    path = change.document.removeprefix("Documentation/")
    if path == change.document or not path.endswith(".rst"):
        return code(change.document)
    return f"[{escaped(path)}](https://docs.kernel.org/{path.removesuffix('.rst')}.html)"


# Sentences ----------------------------------------------------------------------------------------


def _title(deployment: Deployment) -> str:
    return f"{deployment.title}: {deployment.verdict.gain}"


def _origin(plan: Plan) -> Iterator[str]:
    """Where the values come from, how much of the gain they keep, and what the plan is for."""
    deployment = plan.deployment
    count = len(deployment.changes)
    told = "the whole winner"
    if deployment.origin == "smallest set":
        told = "the smallest set that was found to keep the gain"
    yield (
        f"{counted(count, 'key')}, {told}, of study {deployment.study}, campaign "
        f"{deployment.campaign} of {deployment.started_at[:10]}"
    )
    if deployment.kept is not None:
        yield kept_sentence(deployment.kept)
    if deployment.instead:
        yield f"not the smallest set that was found: {deployment.instead}"
    if plan.for_review:
        yield "for review only: what is applied is measured first, on a cluster of the study"


def worth(change: Change, origin: Origin) -> str:
    """What was measured of a change, in words; the comparison that is nearest to what is deployed.

    Such as: without it P99 is 3.46 times higher (1.55 to 7.70).
    """
    found = change.contribution
    if found is None:
        return "not measured by itself (intop explain does that)"
    others = [key for key in found.keys if key != change.key]
    it = f"it and {', '.join(others)}" if others else "it"
    if origin == "smallest set" and found.missed is not None:
        return f"without {it} P99 is {_times(found.missed, 'higher')}"
    if found.left_out is not None:
        told = _times(found.left_out, "higher")
        if origin == "winner":
            return f"without {it} P99 is {told}"
        return f"without {it} the whole winner's P99 is {told}"
    if found.alone is not None:
        return f"{it} alone: P99 is {_times(found.alone, 'lower')}"
    return "not measured by itself"


def _times(ratio: RatioInterval, word: str) -> str:
    """Such as: 3.46 times higher (1.55 to 7.70)."""
    if ratio.ratio < 1:
        ratio = RatioInterval(1 / ratio.ratio, 1 / ratio.high, 1 / ratio.low)
        word = {"higher": "lower", "lower": "higher"}[word]
    unclear = ", so it may be nothing" if ratio.low <= 1 <= ratio.high else ""
    return f"{ratio.ratio:.2f} times {word} ({ratio.low:.2f} to {ratio.high:.2f}{unclear})"


def _counts(host: HostPlan) -> str:
    """Such as: 2 keys to change, 1 is so already, 1 conflict."""
    told = [f"{counted(len(host.of('changes')), 'key')} to change"]
    if already := host.of("is so"):
        told.append(f"{len(already)} so already")
    if impossible := host.of("impossible"):
        told.append(f"{len(impossible)} impossible")
    if host.conflicts:
        told.append(counted(host.conflicts, "conflict"))
    return ", ".join(told)


def _to_do(key: PlannedKey) -> str:
    return {"changes": "set", "is so": "nothing", "impossible": "can't be"}[key.outcome]


def _now(key: PlannedKey) -> str:
    if key.now is None:
        return "none"
    return key.now or "empty"


def _step(plan: Plan, number: int, host: HostPlan) -> Iterator[str]:
    """What apply does on a host, or all that keeps it from that."""
    yield from (f"IMPOSSIBLE  {why}" for why in host.problems)
    if host.problems or host.obstacles or plan.for_review:
        return
    if host.has_it:
        yield "apply: it has these values already, and is left alone"
        return
    first = "the canary, " if number == 0 else ""
    stays = f"write {host.file}" if plan.persist else "until a reboot"
    yield (
        f"apply: {first}measure them against its own values in up to {plan.rounds} rounds; if that "
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
            yield f"NOTE  {name}: {key.filed.place}, of an earlier deployment, has {_filed(key)}"
    yield from (f"NOTE  {note}" for note in host.notes)


def _filed(key: PlannedKey) -> str:
    if key.filed is None or key.filed.value == key.change.value:
        return "this value already"
    return f"{key.filed.value}, and will be replaced"


def _conflict(key: PlannedKey, rival: Rival) -> str:
    """Who sets a key to something else, who wins, and what to do."""
    setting, value = rival.setting, key.change.value
    what = setting.value or "nothing"
    if setting.key == PARTNERS.get(key.change.key):
        what, value = f"its partner {setting.key} to {setting.value}", "0"
    told = f"{key.change.key}: {setting.place} sets {what}"
    if rival.wins == "never":
        return f"NOTE  {told}; our file comes after it and wins: nothing to do"
    if rival.wins == "on reload":
        return (
            f"CONFLICT  {told}; our file wins at boot, but the next sysctl --system reads that "
            f"after it: take the line out, or let it set {value}"
        )
    if setting.is_tuned:
        return (
            f"CONFLICT  {told} at boot after our file, and wins (reapply_sysctl is off): take it "
            f"out of the profile, or deploy as a TuneD profile (intop export --format tuned)"
        )
    return (
        f"CONFLICT  {told} at boot after our file, and wins: take the line out, or let it set "
        f"{value}"
    )
