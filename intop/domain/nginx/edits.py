"""From wanted values to edits of files: as few characters as possible, never a directive twice."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from intop.domain.nginx import quantity
from intop.domain.nginx.conf import Conf, Place
from intop.domain.nginx.directive import Directive, NginxFacts
from intop.domain.nginx.standing import (
    Directives,
    Standing,
    choice_of,
    current,
    deciding,
    default,
    is_file_log,
    is_off,
    standing,
    zone_in,
)
from intop.domain.nginx.syntax import Source, Statement
from intop.domain.nginx.wording import Splice, difference, with_last, with_zone, without_repeats
from intop.domain.space import Capacity, Order


@dataclass(frozen=True)
class Changed:
    """The new texts of the files that change, by path.

    `left` has a line for each place where a wanted directive stands and is kept as it is.
    """

    texts: Mapping[str, str]
    left: tuple[str, ...] = ()


def changed(
    directives: Directives,
    conf: Conf,
    wanted: Mapping[str, str],
    facts: NginxFacts,
) -> Changed:
    """The files with these values of directives, by key.

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
    editor = _Editor(directives, conf, facts)
    values = _agreed(directives, conf, wanted, facts)
    groups: dict[tuple[str, str, tuple[str, ...]], list[tuple[Directive, str]]] = {}
    for key, directive in directives.by_key.items():
        if key in values:
            group = (directive.level, directive.name, directive.fixed)
            groups.setdefault(group, []).append((directive, values[key]))
    for parts in groups.values():
        editor.set(sorted(parts, key=lambda part: bool(part[0].beside)))
    return editor.changed()


def accepts(directive: Directive, value: str) -> bool:
    """Whether this is a value of a directive, so that no word of nginx's language gets in."""
    if directive.parameter.is_numeric:
        return re.fullmatch(r"-?[0-9]{1,15}", value) is not None
    return value in directive.parameter.choices


def _agreed(
    directives: Directives, conf: Conf, wanted: Mapping[str, str], facts: NginxFacts
) -> dict[str, str]:
    """The wanted values, and those of directives that must agree with them."""
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
    """What else must change, since values of several blocks that are now in one do not fit.

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


Part = tuple[Directive, str]


@dataclass
class _Editor:
    directives: Directives
    conf: Conf
    facts: NginxFacts
    splices: dict[str, list[Splice]] = field(default_factory=dict)
    added: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    left: dict[str, None] = field(default_factory=dict)

    def set(self, parts: Sequence[Part]) -> None:
        """Set the values of one directive, wherever it is to stand."""
        first = parts[0][0]
        found = standing(self.conf, first)
        if all(value == directive.as_is for directive, value in parts):
            return
        self._note_left(found, first)
        self._change(found, parts)
        if first.level == "upstream":
            self._insert_in_upstreams(found, parts)
        elif first.level != "listen" and not found.own:
            self._insert(parts)
        for directive, value in parts:
            companion = directive.companion
            if companion and companion.value == value and self.facts.version < companion.until:
                self._accompany(companion.name, companion.arguments)

    def changed(self) -> Changed:
        """All edits, carried out."""
        texts = {}
        for path in sorted({*self.splices, *(path for path, _ in self.added)}):
            texts[path] = self._edited(path)
        return Changed(texts, tuple(self.left))

    # What stands already ---------------------------------------------------------------------

    def _note_left(self, found: Standing, directive: Directive) -> None:
        kept = found.inner if directive.inner == "keep" else ()
        for place in (*kept, *found.shared):
            words = " ".join(word.text for word in place.statement.words)
            self.left[f"{place.where} keeps {words[:100]}"] = None

    def _change(self, found: Standing, parts: Sequence[Part]) -> None:
        inner = found.inner if parts[0][0].inner == "change" else ()
        is_off = any(d.as_is is not None and v != d.as_is for d, v in parts)
        levels: set[tuple[Place, ...]] = set()
        places = (*found.own, *inner)
        off = {place.parents for place in places if place.statement.arguments[:1] == ("off",)}
        effective = _effective(places, parts[0][0])
        for place in places:
            statement = effective[place.span].statement
            # Quotes hide neither a value nor an option.
            old = [word.value for word in statement.words]
            new = self._words(old, parts)
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

    def _words(self, old: Sequence[str], parts: Sequence[Part]) -> list[str] | None:
        """A statement's words with these values, or None where it is to go."""
        words: list[str] | None = list(old)
        for directive, value in parts:
            if words is not None:
                words = self._with(words, directive, value)
        return words

    def _with(self, words: list[str], directive: Directive, value: str) -> list[str] | None:
        head = 1 + len(directive.fixed)
        text = quantity.written(value, directive.parameter.unit)
        if directive.flag:
            others = [word for word in words if word != directive.flag]
            if value == "off":
                return others
            return words if directive.flag in words else [*words, directive.flag]
        if directive.option:
            return self._with_option(words, directive, value, text)
        at = head + directive.argument - 1
        end = at + 1 if directive.parameter.is_numeric or directive.as_is is not None else None
        if directive.argument and self._is_same(words[at:end], directive, value):
            return words
        if value == directive.absent:
            return words if directive.zone and zone_in(words[head:]) is None else None
        if directive.zone:
            return with_zone(words, directive.zone, text)
        if directive.as_is is not None:
            return words if value == directive.as_is else [words[0], text]
        return [*words[:at], text, *(words[end:] if end else ())]

    def _with_option(
        self, words: list[str], directive: Directive, value: str, text: str
    ) -> list[str] | None:
        if not directive.inserted and not is_file_log(tuple(words[1:])):
            return words
        prefix = f"{directive.option}="
        head = 1 + len(directive.fixed)
        if is_off(directive, words[head:]):
            if value == directive.absent or directive.beside:
                return words
            words = [*words[:head], *(word for word in words[head:] if word != "off")]
        has = [word for word in words if word.startswith(prefix)]
        if value == directive.absent:
            siblings = [
                f"{d.option}="
                for d in self.directives.by_key.values()
                if d.beside == directive.option and (d.level, d.name) == _use(directive)
            ]
            gone = (prefix, *siblings)
            if not has:
                return words
            rest = [word for word in words if not word.startswith(gone)]
            return rest if len(rest) > head else None
        if has:
            # Of several nginx takes the last.
            if self._is_same([has[-1].removeprefix(prefix)], directive, value):
                return words
            return with_last(self._once(words, directive), has[-1], f"{prefix}{text}")
        if directive.beside and not any(w.startswith(f"{directive.beside}=") for w in words):
            return words
        if default(directive, self.facts) == value:
            return words
        # A log's format comes before its buffer.
        missing = ["combined"] if words[0] == "access_log" and len(words) == 2 else []
        return [*self._once(words, directive), *missing, f"{prefix}{text}"]

    def _once(self, words: Sequence[str], directive: Directive) -> list[str]:
        """The words without options that a later word replaces: nginx counts them all the same."""
        options = [d.option for d in self.directives.by_key.values() if _use(d) == _use(directive)]
        return without_repeats(words, [f"{option}=" for option in options if option])

    def _is_same(self, texts: Sequence[str], directive: Directive, value: str) -> bool:
        """Whether a text says a value already, perhaps in other words: 1024k, 1m."""
        if texts == ["auto"] and directive.per_cpu:
            return value == str(self.facts.cpus)
        if directive.as_is is not None:
            return list(texts) == [value]
        if not directive.parameter.is_numeric:
            return len(texts) == 1 and choice_of(directive, texts[0]) == value
        return bool(texts) and str(quantity.read(texts[0], directive.parameter.unit)) == value

    # What doesn't stand yet ------------------------------------------------------------------

    def _new(self, parts: Sequence[Part]) -> str | None:
        """A statement of these values, or None where nginx has them without one."""
        parts = [part for part in parts if part[0].inserted]
        if not parts:
            return None
        first = parts[0][0]
        values = {directive.key: value for directive, value in parts}
        has = {
            d.key
            for d, value in parts
            if value != d.absent and (value != default(d, self.facts) or d.follows)
        }
        if not has:
            return None
        words = [first.name, *first.fixed]
        if first.argument:
            # With one argument of a directive come all of them.
            same = [d for d in self.directives.by_key.values() if _use(d) == _use(first)]
            for d in sorted(same, key=lambda d: d.argument):
                if d.argument:
                    value = values.get(d.key, default(d, self.facts))
                    words.append(quantity.written(value, d.parameter.unit))
        elif first.zone:
            words = with_zone(words, first.zone, quantity.written(parts[0][1], _unit(first)))
        else:
            options = {d.option for d, _ in parts if d.key in has}
            for d, value in parts:
                if value != d.absent and (not d.beside or d.beside in options):
                    words.append(f"{d.option}={quantity.written(value, _unit(d))}")
            if len(words) == 1 + len(first.fixed):
                return None
        return f"{' '.join(words)};"

    def _insert(self, parts: Sequence[Part]) -> None:
        text = self._new(parts)
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

    def _insert_in_upstreams(self, found: Standing, parts: Sequence[Part]) -> None:
        text = self._new(parts)
        blocks = [
            place
            for place in self.conf.named("upstream")
            if place.context == ("http",) and place.statement.body is not None
        ]
        having = {place.parents[-1].span for place in found.own}
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
                said = place.statement.arguments[:1]
                if said and said[0].lower() == arguments[0].lower():
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


def _use(directive: Directive) -> tuple[str, str]:
    return directive.level, directive.name


def _unit(directive: Directive) -> str:
    return directive.parameter.unit


def _effective(places: Sequence[Place], directive: Directive) -> dict[tuple[str, int], Place]:
    """By their spans: the last place in the block of each, which nginx goes by.

    Each `listen` and each log counts by itself.
    """
    if directive.name in ("listen", "access_log"):
        return {place.span: place for place in places}
    last = {place.parents: place for place in places}
    return {place.span: last[place.parents] for place in places}


def _indent_within(source: Source, block: Statement) -> str:
    """The blanks before what stands in a block: as its first statement on a line of its own has."""
    for statement in block.body or ():
        line = source.text.rfind("\n", 0, statement.start) + 1
        if line > block.inner and not source.text[line : statement.start].strip():
            return source.text[line : statement.start]
    line = source.text.rfind("\n", 0, block.start) + 1
    before = source.text[line : block.start]
    return (before if not before.strip() else "") + "    "
