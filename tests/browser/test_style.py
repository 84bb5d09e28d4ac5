"""How the viewer looks: the style guide, compared with what was agreed on.

What is compared is what a browser makes of the stylesheet for each component: its colours, its edges, its paddings and
how its parts are placed; not pixels, and not the sizes of text, since the fonts of machines differ. `make snapshots`
writes down anew what is expected, and pictures of every section to look at.
"""

from importlib.resources import files

import pytest

from tests.browser.agreed import RENEWED, Agreed, picture
from tests.viewer.fake_reader import FakeReader

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
WIDTHS = {"wide": 1280, "phone": 390}
SCHEMES = ("light", "dark")

LOOK = """
  () => {
    const everywhere = ['display', 'position', 'color', 'backgroundColor', 'borderTopStyle', 'borderTopWidth',
      'borderTopColor', 'borderRadius', 'fontWeight', 'textAlign', 'textDecorationLine', 'paddingTop', 'paddingLeft',
      'gap'];
    const drawn = ['fill', 'stroke', 'strokeDasharray'];
    // Browsers write down one colour in many ways.
    const hex = (numbers) => '#' + numbers.map((each) => Math.round(each).toString(16).padStart(2, '0')).join('');
    const plainly = (value) => value.replace(/(rgba?|color)\\((srgb )?([^)]*)\\)/g, (_, kind, space, parts) => {
      const [red, green, blue, alpha = 1] = parts.match(/[\\d.]+/g).map(Number);
      const whole = [red, green, blue].map((each) => each * (space ? 255 : 1));
      return hex(alpha === 1 ? whole : [...whole, alpha * 255]);
    });
    const lookOf = (each) => {
      const style = getComputedStyle(each);
      const names = each.namespaceURI.endsWith('svg') ? drawn : everywhere;
      const bare = (name) => name === 'borderTopColor' && style.borderTopStyle === 'none';
      return Object.fromEntries(names.filter((name) => !bare(name)).map((name) => [name, plainly(style[name])]));
    };
    const unclassed = new Map(), looks = {};
    const usual = (each) => {
      if (!unclassed.has(each.localName)) {
        const bare = document.createElementNS(each.namespaceURI, each.localName);
        document.body.append(bare);
        unclassed.set(each.localName, lookOf(bare));
        bare.remove();
      }
      return unclassed.get(each.localName);
    };
    for (const section of document.querySelectorAll('[data-guide]')) {
      const found = looks[section.dataset.guide] = {};
      for (const each of section.querySelectorAll('[class]')) {
        const before = usual(each);
        const own = Object.entries(lookOf(each)).filter(([name, value]) => before[name] !== value);
        found[[each.localName, ...each.classList].join('.')] ??= own.map((pair) => pair.join(': ')).join('; ');
      }
    }
    return looks;
  }
"""
"""By section of the guide and kind of component: in what it does not look like a bare element of its name."""
SPILLING = """
  [...document.querySelectorAll('[data-guide] :is(.pill, button, input, select, .chips a, .tabs a, .amount, .kind)')]
    .filter((each) => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== 'inline')
    .map((each) => each.outerHTML.slice(0, 120))
"""
SMALL = """
  [...document.querySelectorAll('[data-guide] button, header a, header button, footer button, [data-guide] .step')]
    .map((each) => [each.outerHTML.slice(0, 80), each.getBoundingClientRect()])
    .filter(([, box]) => box.width && (box.width < 24 || box.height < 24)).map(([html]) => html)
"""


@pytest.fixture(scope="module")
def reader():
    return FakeReader()


@pytest.fixture(scope="module")
def agreed():
    agreed = Agreed("style.json")
    yield agreed.known
    agreed.write()


@pytest.fixture(params=[(width, scheme) for width in WIDTHS for scheme in SCHEMES], ids="-".join)
def guide(request, watch):
    width, scheme = request.param
    settings = {"viewport": {"width": WIDTHS[width], "height": 900}, "color_scheme": scheme, "reduced_motion": "reduce"}
    return f"{width}-{scheme}", watch(**settings).open("/style")


def test_every_component_looks_as_was_agreed(guide, agreed):
    state, page = guide
    found = page.evaluate(LOOK)
    if RENEWED:
        agreed[state] = found
        for name in found:
            page.locator(f"[data-guide={name}]").screenshot(path=picture(f"{name}-{state}"))
    assert found == agreed[state]


def test_every_component_in_every_state_can_be_used_by_everybody(guide):
    _, page = guide
    assert page.evaluate(SPILLING) == []
    assert page.evaluate(SMALL) == []
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    page.evaluate(AXE)
    found = page.evaluate("axe.run()")
    assert [(rule["id"], [node["html"][:120] for node in rule["nodes"]]) for rule in found["violations"]] == []


def test_forced_colours_leave_words_and_the_focus_in_view(watch):
    page = watch(forced_colors="active").open("/style")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert page.locator("[data-guide=pills] .pill").first.is_visible()


def test_at_twice_its_size_nothing_is_lost_sideways(watch):
    page = watch(viewport={"width": 640, "height": 450}, device_scale_factor=2).open("/style")
    assert page.evaluate("document.documentElement.scrollWidth") <= 640
