// What a reader did to a part of a page, done again to what takes its place: what is open or closed, what was typed and
// not sent, and where the focus is.
//
// An element is known again by the nearest element that has an id, by what it is, and by its place among those alike.

const FOCUSED = "a[href], button, input, select, summary, textarea, [tabindex]";
const TYPED = "input[type=number], input[type=search], input[type=text], textarea";

function nameOf(element) {
  const about = element.getAttribute("href") ?? element.getAttribute("name") ?? element.className;
  return JSON.stringify([element.closest("[id]")?.id, element.localName, about]);
}

function* pairs(shown, fresh, selector) {
  const alike = Map.groupBy(fresh.querySelectorAll(selector), nameOf);
  for (const old of shown.querySelectorAll(selector)) {
    const again = alike.get(nameOf(old))?.shift();
    if (again !== undefined) yield [old, again];
  }
}

// To be called before the one takes the place of the other; what it returns is called after that.
export function asLeft(shown, fresh) {
  for (const [old, again] of pairs(shown, fresh, "details")) again.open = old.open;
  for (const [old, again] of pairs(shown, fresh, TYPED)) {
    if (old.value !== old.defaultValue) again.value = old.value;
  }
  const focused = document.activeElement;
  const again = [...pairs(shown, fresh, FOCUSED)].find(([old]) => old === focused)?.[1];
  const [from, to] = [focused?.selectionStart ?? null, focused?.selectionEnd ?? null];
  return () => {
    again?.focus({ preventScroll: true });
    if (from !== null) again?.setSelectionRange?.(from, to);
  };
}
