"""Colours: every ink passes WCAG AA on every ground it stands on, in light and in dark."""

import re
from pathlib import Path

import pytest

TOKENS = Path(__file__).parents[2] / "viewer" / "static" / "css" / "tokens.css"
AA = 4.5


def colours(scheme: int) -> dict[str, str]:
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", TOKENS.read_text())
    return {name: (light, dark)[scheme] for name, light, dark in pairs}


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


GROUNDS = {
    **dict.fromkeys(("ink", "dim", "accent", "bad", "good"), ("panel", "soft", "paper", "accent-soft")),
    **dict.fromkeys(("model-ink", "tool-ink", "guard-ink"), ("panel", "soft", "accent-soft")),
    # Words inside a bar.
    "panel": ("model", "tool", "guard", "bad"),
}


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_ink_can_be_read_on_its_grounds(scheme):
    known = colours(scheme)
    weak = {
        f"{ink} on {ground}": round(contrast(known[ink], known[ground]), 2)
        for ink, grounds in GROUNDS.items()
        for ground in grounds
        if contrast(known[ink], known[ground]) < AA
    }
    assert weak == {}


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_pill_can_be_read(scheme):
    known = colours(scheme)
    pairs = [
        ("bad", "bad-soft"),
        ("good", "good-soft"),
        ("warn", "warn-soft"),
        ("dim", "quiet-soft"),
        ("accent", "accent-soft"),
    ]
    assert {
        ink: contrast(known[ink], known[ground]) for ink, ground in pairs if contrast(known[ink], known[ground]) < AA
    } == {}
