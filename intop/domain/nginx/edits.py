"""Edits of files that set wanted values: as few characters as possible, no directive twice."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from intop.domain.constraints import Capacity, Order
from intop.domain.nginx.conf import Conf, Place
from intop.domain.nginx.directive import Directive, NginxFacts
from intop.domain.nginx.standing import Directives, Standing, current, deciding, standing
from intop.domain.nginx.syntax import Source, Statement
from intop.domain.nginx.wording import Part, Splice, Wording, difference


@dataclass(frozen=True)
class Changed:
    """The new texts of files."""

    texts: Mapping[str, str]
    """The files that change, by path."""
    left: tuple[str, ...] = ()
    """A line for each place where a wanted directive is kept as it is."""


def changed(
    directives: Directives,
    conf: Conf,
    wanted: Mapping[str, str],
    facts: NginxFacts,
) -> Changed:
    """Return the files with these values of directives, by key.

    A value that holds in all places changes nothing, so a second time nothing changes. A default
    that follows others is written all the same. Where a wanted value has to agree with others
    (`proxy_buffers` and its family), these get one value in all places, too. Raises ValueError for
    a key or a value that is none.
    """
    for key, value in wanted.items():
        if key not in directives.by_key:
            raise ValueError(f"{key} is no directive that is known")
        if not accepts(directives.by_key[key], value):
            raise ValueError(f"{value!r} is no value of {key}")
    editor = _Editor(conf, Wording(directives, facts))
    values = _agreed(directives, conf, wanted, facts)
    groups: dict[tuple[str, str, tuple[str, ...]], list[Part]] = {}
    for key, directive in directives.by_key.items():
        if key in values:
            group = (directive.level, directive.name, directive.fixed)
            groups.setdefault(group, []).append((directive, values[key]))
    for parts in groups.values():
        editor.set(sorted(parts, key=lambda part: bool(part[0].beside)))
    return editor.changed()


def accepts(directive: Directive, value: str) -> bool:
    """Return whether this is a value of a directive, and no word of nginx's language."""
    if directive.parameter.is_numeric:
        return re.fullmatch(r"-?[0-9]{1,15}", value) is not None
    return value in directive.parameter.choices


def _agreed(
    directives: Directives, conf: Conf, wanted: Mapping[str, str], facts: NginxFacts
) -> dict[str, str]:
    """Return the wanted values, and those of directives that must agree with them."""
    values = dict(wanted)
    now: dict[str, str | None] | None = None
    followers: list[Directive] = []
    for key in sorted(directives.related(wanted) - set(wanted)):
        now = now or current(directives, conf, facts)
        directive = directives.by_key[key]
        place = deciding(standing(conf, directive), directive)
        if place is None and directive.follows:
            followers.append(directive)
        elif place is not None and (value := now[key]) is not None:
            values[key] = value
    known = {k: v for k, v in (now or {}).items() if v is not None} | values
    for directive in followers:
        follows = 2 * max(int(known[key]) for key in directive.follows)
        for c in directives.constraints:
            if isinstance(c, Capacity) and c.held == directive.key:
                room = (int(known[c.count]) - 1) * int(known[c.size])
                if follows > room:
                    values[directive.key] = str(room)
        known[directive.key] = values.get(directive.key, str(follows))
    return values | _reconciled(directives, known, wanted)


def _reconciled(
    directives: Directives, known: Mapping[str, str], wanted: Mapping[str, str]
) -> dict[str, str]:
    """Return what else must change, since values of several blocks do not fit in one.

    What contradicts a wanted value is left to nginx, which refuses it.
    """
    numbers = {
        key: int(known[key])
        for key in directives.related(wanted) - set(wanted)
        if key in known and directives.by_key[key].level == "http" and known[key].isdigit()
    }
    before = dict(numbers)
    for c in 2 * directives.constraints:
        if not isinstance(c, Order | Capacity) or not numbers.keys() >= set(c.columns):
            continue
        if isinstance(c, Order):
            for low, high in pairwise(c.columns):
                numbers[high] = max(numbers[low], numbers[high])
        elif (numbers[c.count] - 1) * numbers[c.size] < numbers[c.held]:
            numbers[c.count] = 1 - (-numbers[c.held] // numbers[c.size])
    return {key: str(number) for key, number in numbers.items() if number != before[key]}


@dataclass
class _Editor:
    """The edits of all files so far."""

    conf: Conf
    wording: Wording
    splices: dict[str, list[Splice]] = field(default_factory=dict)
    added: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    left: dict[str, None] = field(default_factory=dict)

    def set(self, parts: Sequence[Part]) -> None:
        """Set the values of one directive, wherever it is to stand."""
        first = parts[0][0]
        places = standing(self.conf, first)
        if all(value == directive.as_is for directive, value in parts):
            return
        self._note_left(places, first)
        self._change(places, parts)
        if first.level == "upstream":
            self._insert_in_upstreams(places, parts)
        elif first.level != "listen" and not places.own:
            self._insert(parts)
        version = self.wording.facts.version
        for directive, value in parts:
            companion = directive.companion
            if companion and companion.value == value and version < companion.until:
                self._accompany(companion.name, companion.arguments)

    def changed(self) -> Changed:
        """Return the files with all edits."""
        texts = {}
        for path in sorted({*self.splices, *(path for path, _ in self.added)}):
            texts[path] = self._edited(path)
        return Changed(texts, tuple(self.left))

    # What stands already ---------------------------------------------------------------------

    def _note_left(self, places: Standing, directive: Directive) -> None:
        kept = places.inner if directive.inner == "keep" else ()
        for place in (*kept, *places.shared):
            words = " ".join(word.text for word in place.statement.words)
            self.left[f"{place.where} keeps {words[:100]}"] = None

    def _change(self, standing: Standing, parts: Sequence[Part]) -> None:
        inner = standing.inner if parts[0][0].inner == "change" else ()
        is_off = any(d.as_is is not None and v != d.as_is for d, v in parts)
        levels: set[tuple[Place, ...]] = set()
        places = (*standing.own, *inner)
        off = {place.parents for place in places if place.statement.arguments[:1] == ("off",)}
        effective = _effective(places, parts[0][0])
        for place in places:
            statement = effective[place.span].statement
            # Quotes hide neither a value nor an option.
            old = [word.value for word in statement.words]
            new = self.wording.words(old, parts)
            # Several logs of one level become one `off`.
            if is_off and place.parents in off:
                continue
            if is_off and place.parents in levels:
                new = None
            levels.add(place.parents)
            if new is None:
                self._remove(place.source, place.statement)
            elif new != old and statement is place.statement:
                self._splice(place.source.path, difference(statement.words, old, new))

    # What doesn't stand yet ------------------------------------------------------------------

    def _insert(self, parts: Sequence[Part]) -> None:
        text = self.wording.statement(parts)
        if text is None:
            return
        level = parts[0][0].level
        block = self.conf.block("events" if level == "main" else level)
        if block is None:
            return
        if level == "main":
            self._insert_before(block.source, block.statement, text)
        else:
            self._insert_at_top(block, text)

    def _insert_in_upstreams(self, places: Standing, parts: Sequence[Part]) -> None:
        text = self.wording.statement(parts)
        blocks = [
            place
            for place in self.conf.named("upstream")
            if place.context == ("http",) and place.statement.body is not None
        ]
        having = {place.parents[-1].span for place in places.own}
        for block in {place.span: place for place in blocks}.values():
            if text is not None and block.span not in having:
                # After the method of balancing, which nginx wants first.
                self._insert_at_end(block, text)

    def _accompany(self, name: str, arguments: tuple[str, ...]) -> None:
        """Give each block that says `name` about other things this line, too, and `http`.

        In nginx a block with such a line of its own has none of the blocks around it.
        """
        text = f"{' '.join((name, *arguments))};"
        blocks: dict[tuple[str, int], Place] = {}
        having: set[tuple[str, int]] = set()
        http = self.conf.block("http")
        if http is not None:
            blocks[http.span] = http
        for place in self.conf.named(name):
            if place.context[:1] == ("http",):
                block = place.parents[-1]
                blocks[block.span] = block
                first = place.statement.arguments[:1]
                if first and first[0].lower() == arguments[0].lower():
                    having.add(block.span)
        for span, block in blocks.items():
            if span not in having:
                self._insert_at_end(block, text)

    # Texts -----------------------------------------------------------------------------------

    def _insert_at_top(self, block: Place, text: str) -> None:
        source, statement = block.source, block.statement
        rest = re.compile(r"[ \t\r]*(#[^\n]*)?\n").match(source.text, statement.inner)
        if rest is None or rest.end() > statement.closing:
            self._add(source.path, statement.inner, f" {text}")
        else:
            indent = _indent_within(source, statement)
            self._add(source.path, rest.end(), f"{indent}{text}{source.newline}")

    def _insert_at_end(self, block: Place, text: str) -> None:
        source, statement = block.source, block.statement
        line = source.text.rfind("\n", 0, statement.closing) + 1
        if line > statement.inner and not source.text[line : statement.closing].strip():
            indent = _indent_within(source, statement)
            self._add(source.path, line, f"{indent}{text}{source.newline}")
        else:
            self._add(source.path, statement.closing, f"{text} ")

    def _insert_before(self, source: Source, statement: Statement, text: str) -> None:
        line = source.text.rfind("\n", 0, statement.start) + 1
        if source.text[line : statement.start].strip():
            self._add(source.path, statement.start, f"{text} ")
        else:
            indent = source.text[line : statement.start]
            self._add(source.path, line, f"{indent}{text}{source.newline}")

    def _remove(self, source: Source, statement: Statement) -> None:
        line = source.text.rfind("\n", 0, statement.start) + 1
        rest = re.compile(r"[ \t\r]*\n").match(source.text, statement.end)
        start, end = statement.start, statement.end
        if rest is not None and not source.text[line:start].strip():
            start, end = line, rest.end()
        self._splice(source.path, Splice(start, end, ""))

    def _splice(self, path: str, splice: Splice) -> None:
        self.splices.setdefault(path, []).append(splice)

    def _add(self, path: str, offset: int, text: str) -> None:
        self.added.setdefault((path, offset), []).append(text)

    def _edited(self, path: str) -> str:
        text = self.conf.sources[path].text
        splices = list(self.splices.get(path, []))
        for (of, offset), texts in self.added.items():
            if of == path:
                splices.append(Splice(offset, offset, "".join(texts)))
        for splice in sorted(splices, key=lambda s: (s.start, s.end), reverse=True):
            text = text[: splice.start] + splice.text + text[splice.end :]
        return text


def _effective(places: Sequence[Place], directive: Directive) -> dict[tuple[str, int], Place]:
    """Return by span the last place in the block of each, which nginx goes by.

    Each `listen` and each log counts by itself.
    """
    if directive.name in ("listen", "access_log"):
        return {place.span: place for place in places}
    last = {place.parents: place for place in places}
    return {place.span: last[place.parents] for place in places}


def _indent_within(source: Source, block: Statement) -> str:
    """Return the blanks before the first statement on a line of its own in a block."""
    for statement in block.body or ():
        line = source.text.rfind("\n", 0, statement.start) + 1
        if line > block.inner and not source.text[line : statement.start].strip():
            return source.text[line : statement.start]
    line = source.text.rfind("\n", 0, block.start) + 1
    before = source.text[line : block.start]
    return (before if not before.strip() else "") + "    "
