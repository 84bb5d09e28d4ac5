"""What templates print is inert, whatever it is, and what they name has to be there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import StrictUndefined
from jinja2.exceptions import UndefinedError
from markupsafe import Markup, escape

from ledger.words.text import visible
from viewer.printing import PrintingEnvironment, inert

ENVIRONMENT = PrintingEnvironment(autoescape=True, undefined=StrictUndefined)


class Hostile(str):
    """Text of a class of its own."""

    __slots__ = ()


class Word:
    """Something that says of itself what is no markup."""

    def __str__(self) -> str:
        return "<b>"


def printed(source: str, **context: object) -> str:
    return ENVIRONMENT.from_string(source).render(context)


@given(st.text(st.characters(codec=None)))
def test_any_text_is_escaped_with_what_it_hides_shown(text):  # CASES 46
    assert inert(text) == inert(Hostile(text)) == escape(visible(text))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('<b title="\'">&', "&lt;b title=&#34;&#39;&#34;&gt;&amp;"),
        (Markup("<b>"), "<b>"),
        (Word(), "&lt;b&gt;"),
        (["<b>"], "[&#39;&lt;b&gt;&#39;]"),
        (12, "12"),
        (1.5, "1.5"),
        (True, "True"),
        (None, "None"),
    ],
)
def test_all_but_markup_is_escaped(value, shown):
    assert printed("{{ value }}", value=value) == shown


def test_what_macros_and_blocks_make_is_markup_and_what_they_are_given_is_not():
    told = '{% macro told(text, wide=false) %}<i{{ " wide" if wide }}>{{ text }}</i>{% endmacro %}'
    assert printed(told + "{{ told(text, wide=true) }}", text="<b>") == "<i wide>&lt;b&gt;</i>"
    around = "{% macro around() %}<i>{{ caller() }}</i>{% endmacro %}"
    assert printed(around + "{% call around() %}<u>{{ text }}</u>{% endcall %}", text="&") == "<i><u>&amp;</u></i>"


def test_functions_are_called_in_loops_and_blocks_with_what_they_are_given_alone():
    source = "{% block all %}{% for each in (1, 2) %}{{ shown(each, of=loop.length) }}{% endfor %}{% endblock %}"
    assert printed(source, shown=lambda each, of: f"{each}/{of} ") == "1/2 2/2 "


def test_what_is_not_there_is_an_error_and_no_item_passes_for_an_attribute():
    with pytest.raises(UndefinedError):
        printed("{{ nobody }}")
    with pytest.raises(UndefinedError):
        printed("{{ nobody.name }}")
    with pytest.raises(AttributeError):
        printed("{{ facts.name }}", facts={"name": "x"})
    assert printed('{{ facts["name"] }}', facts={"name": "x"}) == "x"
