// What is looked at on every page: how its parts look, where its panels stand, and what no page may have.
// A function of the colours' names and, but on the style guide itself, of the looks that the guide has.
({ tokens, guide }) => {
  const PLACED = ["display", "position", "backgroundColor", "borderTopStyle", "borderTopWidth", "borderTopColor",
    "borderRadius", "textDecorationLine", "paddingTop", "paddingLeft", "gap"];
  const INHERITED = ["color", "fontWeight", "textAlign"];
  const DRAWN = ["fill", "stroke", "strokeDasharray"];
  // What stands in a flex box or a grid is a block, whatever it is otherwise.
  const FLOWING = { inline: "flow", block: "flow", "inline-block": "flow", "flow-root": "flow", "inline-flex": "flex", "inline-grid": "grid" };
  // They say how many there are, or how deep something lies.
  const COUNTED = /^(of-\d+|[dg]\d)$/;
  const SMALLEST_PX = 11;

  const isDrawn = (each) => each.namespaceURI.endsWith("svg");
  const isSeen = (each) => each.checkVisibility({ visibilityProperty: true });
  const named = (each) => [each.localName, ...[...each.classList].filter((name) => !COUNTED.test(name))].join(".");
  const told = (each) => `${named(each)} “${each.textContent.trim().slice(0, 60)}”`;

  // Colours by the names of their tokens, which are the same by day and by night.
  const probe = document.body.appendChild(document.createElement("i"));
  const names = new Map(tokens.toReversed().map((token) => {
    probe.style.color = `var(--${token})`;
    return [getComputedStyle(probe).color, token];
  }));
  probe.remove();
  const hex = (parts) => `#${parts.map((each) => Math.round(each).toString(16).padStart(2, "0")).join("")}`;
  const mixed = (colour) => {
    const [red, green, blue, alpha = 1] = colour.replace("srgb", "").match(/[\d.]+/g).map(Number);
    return hex([...[red, green, blue].map((each) => each * (colour.startsWith("color") ? 255 : 1)), alpha * 255]);
  };
  const byName = (value) => value.replace(/(rgba?|color)\([^)]*\)/g, (colour) => names.get(colour) ?? mixed(colour));
  const valueOf = (style, name) => name === "display" ? FLOWING[style.display] ?? style.display : byName(style[name]);

  const usuals = new Map();
  const usual = (each) => {
    if (!usuals.has(each.localName)) {
      const bare = document.body.appendChild(document.createElement(each.localName)), style = getComputedStyle(bare);
      usuals.set(each.localName, Object.fromEntries(PLACED.map((name) => [name, valueOf(style, name)])));
      bare.remove();
    }
    return usuals.get(each.localName);
  };

  // In what an element differs from a bare one of its name; and of what is inherited, whether it has its own.
  function lookOf(each) {
    const style = getComputedStyle(each), around = getComputedStyle(each.parentElement);
    const taken = (isDrawn(each) ? DRAWN : INHERITED).map((name) => [name, byName(style[name]), style[name] !== around[name]]);
    if (isDrawn(each)) return { placed: "", taken };
    const own = PLACED.filter((name) => valueOf(style, name) !== usual(each)[name])
      .filter((name) => name !== "borderTopColor" || style.borderTopStyle !== "none");
    return { placed: own.map((name) => `${name}: ${valueOf(style, name)}`).join("; "), taken };
  }
  const inWords = ({ placed, taken }) =>
    [...taken.filter(([, , isOwn]) => isOwn).map(([name, value]) => `${name}: ${value}`), placed].filter(Boolean).join("; ");
  const areAlike = (one, other) => one.placed === other.placed
    && one.taken.every(([, value, isOwn], at) => (!isOwn && !other.taken[at][2]) || value === other.taken[at][1]);

  const looks = {};
  for (const each of document.querySelectorAll("body [class]")) {
    if (!isSeen(each)) continue;
    const look = lookOf(each), alike = (looks[named(each)] ??= []);
    if (!alike.some((known) => areAlike(known, look))) alike.push(look);
  }
  if (!guide) return looks;

  function strangeLooks() {
    const found = {};
    for (const [key, alike] of Object.entries(looks)) {
      const strange = alike.filter((look) => !(guide[key] ?? []).some((known) => areAlike(known, look)));
      if (strange.length) found[key] = strange.map(inWords);
    }
    return found;
  }

  // Left and right of each panel, which no font changes.
  function outline() {
    return [...document.querySelectorAll("header, main .panel, main > :not(:has(.panel)), footer")].filter(isSeen).map((each) => {
      const box = each.getBoundingClientRect();
      return `${named(each)} ${Math.round(box.left)}–${Math.round(box.right)}`;
    });
  }

  // Kept by element: what it holds for all that stands in it.
  const inherited = (own) => {
    const known = new Map([[null, null]]);
    const of = (each) => {
      if (!known.has(each)) known.set(each, own(each, getComputedStyle(each), of(each.parentElement)));
      return known.get(each);
    };
    return of;
  };
  const meet = (one, other) => {
    const left = Math.max(one.left, other.left), right = Math.min(one.right, other.right);
    const top = Math.max(one.top, other.top), bottom = Math.min(one.bottom, other.bottom);
    return { left, right, top, bottom, width: right - left, height: bottom - top };
  };
  // What of an element can be seen through all that it stands in.
  const clipOf = inherited((each, style, outer) => {
    if (style.overflowX === "visible" || isDrawn(each) || each === document.documentElement) return outer;
    return outer ? meet(outer, each.getBoundingClientRect()) : each.getBoundingClientRect();
  });
  const scrollerOf = inherited((each, style, outer) => ["auto", "scroll"].includes(style.overflowX) ? each : outer);
  const floatOf = inherited((each, style, outer) => ["sticky", "fixed"].includes(style.position) ? each : outer);

  function words() {
    const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const around = node.parentElement;
      if (!node.data.trim() || !isSeen(around) || around.closest(".unseen, .skip, .tl-words, title, script, option, textarea")) continue;
      range.selectNodeContents(node);
      for (const box of range.getClientRects()) {
        const clip = clipOf(around), seen = clip ? meet(box, clip) : meet(box, box);
        if (seen.width > 2 && seen.height > 4) found.push({ node, around, box, seen });
      }
    }
    return found;
  }

  function overlapping(found) {
    const wrong = [];
    let open = [];
    for (const one of found.toSorted((a, b) => a.seen.top - b.seen.top)) {
      open = open.filter((other) => other.seen.bottom > one.seen.top);
      for (const other of open) {
        if (other.node === one.node || floatOf(one.around) !== floatOf(other.around)) continue;
        const both = meet(one.seen, other.seen);
        if (both.width > 2 && both.height > 5) wrong.push(`overlap: ${told(one.around)} and ${told(other.around)}`);
      }
      open.push(one);
    }
    return wrong;
  }

  function isCutOff(each) {
    const style = getComputedStyle(each), hides = (overflow) => overflow === "hidden" || overflow === "clip";
    if (style.webkitLineClamp !== "none" || style.textOverflow === "ellipsis" || each.closest(".unseen, .tl-words, input")) return false;
    return (hides(style.overflowX) && each.scrollWidth > each.clientWidth + 1)
      || (hides(style.overflowY) && each.scrollHeight > each.clientHeight + 1);
  }
  // Words that leave their panel, or of a drawing that nobody can scroll.
  function sticksOut({ around, box, seen }) {
    const panel = around.closest(".panel, header, footer")?.getBoundingClientRect();
    return (panel && (seen.left < panel.left - 1 || seen.right > panel.right + 1))
      || (isDrawn(around) && !scrollerOf(around) && seen.width < box.width - 2);
  }
  function isTooSmall(around) {
    const scale = isDrawn(around) ? Math.abs(around.getScreenCTM().a) : 1;
    return parseFloat(getComputedStyle(around).fontSize) * scale < SMALLEST_PX - 0.01;
  }

  function wrongs() {
    const root = document.documentElement, seen = words();
    const html = [...document.querySelectorAll("body *")].filter((each) => !isDrawn(each) && isSeen(each));
    return [...new Set([
      ...(root.scrollWidth > root.clientWidth ? [`sideways: ${root.scrollWidth} px`] : []),
      ...html.filter(isCutOff).map((each) => `cut off: ${told(each)}`),
      ...seen.filter(sticksOut).map(({ around }) => `sticks out: ${told(around)}`),
      ...seen.filter(({ around }) => isTooSmall(around)).map(({ around }) => `too small: ${told(around)}`),
      ...overlapping(seen),
    ])];
  }

  return { strange: strangeLooks(), outline: outline(), wrongs: wrongs() };
}
