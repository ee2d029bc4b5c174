"""Files as trees: nothing of a text is lost, and what nginx can't read has one clear error."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.nginx_files import TEXTS
from intop.domain.nginx.syntax import DEEPEST, Source, Statement, parse
from intop.errors import NginxFileError


def said(statements: tuple[Statement, ...] | None) -> list[object]:
    """Names and arguments alone."""
    return [
        (*(w.value for w in s.words), said(s.body)) if s.body is not None else s.arguments
        for s in statements or ()
    ]


def words_of(source: Source) -> list[tuple[int, int, str]]:
    result: list[tuple[int, int, str]] = []
    todo = list(source.statements)
    while todo:
        statement = todo.pop()
        result += [(w.start, w.end, w.text) for w in statement.words]
        todo += statement.body or ()
    return sorted(result)


def rebuilt(source: Source) -> str:
    """The text from its words and what stands between them, which may only be of no meaning."""
    at, text = 0, ""
    for start, end, word in words_of(source):
        between = source.text[at:start]
        assert re.fullmatch(r"(?:[ \t\r\n;{}]|#[^\n]*(\n|$))*", between), between
        text += between + word
        at = end
    return text + source.text[at:]


names = st.sampled_from(["listen", "server_name", "map", "a", "root"])
arguments = st.one_of(
    st.sampled_from(
        [
            "80",
            "$host",
            "${a}b",
            "'x;y {'",
            '"a \\" }"',
            "a#b",
            'a"b',
            "a}b",
            "\\ x",
            "é",
            "~*^/\\{",
        ]
    ),
    st.from_regex(r"[A-Za-z0-9_./:*$-]{1,8}", fullmatch=True),
)
blanks = st.sampled_from([" ", "\n", "\t ", " # a { comment; \n", "\r\n", "\n#\n"])
simple = st.builds(
    lambda name, rest, end: name + "".join(b + a for b, a in rest) + end + ";",
    names,
    st.lists(st.tuples(blanks, arguments), max_size=3),
    st.sampled_from(["", " ", "\n"]),
)
statements = st.recursive(
    simple,
    lambda inner: st.builds(
        lambda name, gap, body, end: f"{name}{gap}{{{''.join(body)}{end}}}",
        names,
        blanks,
        st.lists(st.builds("".join, st.tuples(blanks, inner)), max_size=4),
        blanks,
    ),
    max_leaves=12,
)
texts = st.builds(
    "".join, st.lists(st.builds("".join, st.tuples(blanks, statements, blanks)), max_size=5)
)


@given(texts)
def test_any_text_comes_back_as_it_was(text: str) -> None:
    assert text == rebuilt(parse(text, "a.conf"))


@pytest.mark.parametrize("name", TEXTS)
def test_real_files_come_back_as_they_were(name: str) -> None:
    assert TEXTS[name] == rebuilt(parse(TEXTS[name], name))


@given(st.text(alphabet="ab {};\"'\\#$\n", max_size=40))
def test_whatever_stands_there_is_read_or_has_an_error_with_its_line(text: str) -> None:
    result: Source | NginxFileError
    try:
        result = parse(text, "/etc/nginx/nginx.conf")
    except NginxFileError as error:
        result = error
    if isinstance(result, Source):
        assert text == rebuilt(result)
    else:
        assert 1 <= result.line <= text.count("\n") + 1
        assert str(result).startswith(f"/etc/nginx/nginx.conf:{result.line}: ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b;", [("b",)]),
        ("a{b c;}", [("a", [("c",)])]),
        ("a 'b c' \"d;\";", [("b c", "d;")]),
        ("if ($a = 'b') { c; }", [("if", "($a", "=", "b", ")", [()])]),
        ("a ${b}c $d;", [("${b}c", "$d")]),
        ("a b#c d}e;", [("b#c", "d}e")]),
        ("a \\; \\{ 'it\\'s';", [("\\;", "\\{", "it's")]),
        ("a 'x\\ty' \\ z \\n\\\\n;", [("x\ty", "\\ z", "\n\\n")]),
        ("a b\n  # c;\n d;", [("b", "d")]),
        ("x_by_lua_block { return '}' -- }\n }", [("x_by_lua_block", [])]),
        ("x_by_lua_block { --[[ } ]] local a = [==[ } ]] ]==] {} }", [("x_by_lua_block", [])]),
    ],
)
def test_words_are_those_that_nginx_sees(text: str, expected: list[object]) -> None:
    assert said(parse(text, "f").statements) == expected


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a b;\n}", 2, 'unexpected "}"'),
        ("a {\n b }\n", 2, 'unexpected "}"'),
        ("\n;", 2, 'unexpected ";"'),
        ("{ }", 1, 'unexpected "{"'),
        ("a;\nb c", 2, "'b' is not ended"),
        ("a;\nb {\nc;\n", 2, "the block 'b' is not ended"),
        ("a\n'b;", 2, "a quote is not closed"),
        ("a 'b'c;", 1, "unexpected 'c' after a quote"),
        ("a \\", 1, "ends in a backslash"),
        ("\nx_by_lua_block { ' }", 2, "the block of Lua is not ended"),
        ("a {" * (DEEPEST + 5), 1, f"more than {DEEPEST} deep"),
    ],
)
def test_what_nginx_can_not_read_has_one_error(text: str, line: int, what: str) -> None:
    with pytest.raises(NginxFileError, match=re.escape(what)) as caught:
        parse(text, "/x.conf")
    assert line == caught.value.line


def test_lines_and_line_ends() -> None:
    source = parse("a;\r\n\r\nb {\r\n  c;\r\n}", "f")
    assert source.newline == "\r\n"
    block = source.statements[1]
    assert (block.line, (block.body or ())[0].line) == (3, 4)
    assert parse("a;\n", "f").newline == "\n"
