// The mouse on a timeline: a drag selects a stretch, the wheel with ctrl looks closer and wider where it points.

const DRAG_MIN_PX = 6;
const WHEEL_REST_MS = 120;

export class Pointing {
  #host;
  #select;
  #wider;
  #drag = null;
  #wheel = { turns: 0, timer: 0, x: 0 };

  constructor(host, signal, select, wider) {
    [this.#host, this.#select, this.#wider] = [host, select, wider];
    host.addEventListener("pointerdown", (event) => this.#grab(event), { signal });
    host.addEventListener("dragstart", (event) => event.preventDefault(), { signal });
    host.addEventListener("wheel", (event) => this.#turn(event), { signal, passive: false });
    document.addEventListener("pointermove", (event) => this.#pull(event), { signal });
    document.addEventListener("pointerup", () => this.#release(), { signal });
    document.addEventListener("pointercancel", () => this.letGo(), { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#wheel.timer));
  }

  // Where the tracks lie: the grid is as wide as they are.
  get #plot() {
    return this.#host.querySelector(".tl-grid")?.getBoundingClientRect();
  }

  #percent(clientX) {
    const plot = this.#plot;
    return Math.min(Math.max(((clientX - plot.left) / plot.width) * 100, 0), Number(this.#host.dataset.edge));
  }

  // The moment at a place of the scale, which is straight between its knots.
  #timeAt(percent) {
    const knots = this.#host.dataset.knots.trim().split(" ").map((knot) => knot.split(":").map(Number));
    const right = Math.max(1, knots.findIndex(([, place], index) => index > 0 && place >= percent));
    const [[t0, x0], [t1, x1]] = knots.slice(right - 1, right + 1);
    return Math.round(t0 + ((percent - x0) / (x1 - x0)) * (t1 - t0));
  }

  #grab(event) {
    const plot = this.#plot;
    if (event.button !== 0 || event.pointerType === "touch" || plot === undefined) return;
    if (event.clientX < plot.left || event.clientY < plot.top || event.clientY > plot.bottom || event.target.closest(".tl") === null) return;
    this.#drag = { from: event.clientX, to: event.clientX, mark: null };
  }

  #pull(event) {
    const drag = this.#drag;
    if (drag === null) return;
    drag.to = event.clientX;
    if (drag.mark === null && Math.abs(drag.to - drag.from) < DRAG_MIN_PX) return;
    drag.mark ??= this.#markSelection();
    event.preventDefault();
    getSelection().removeAllRanges();
    const [left, right] = [drag.from, drag.to].map((x) => this.#percent(x)).sort((a, b) => a - b);
    drag.mark.setAttribute("x", `${left}%`);
    drag.mark.setAttribute("width", `${right - left}%`);
  }

  #markSelection() {
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    mark.setAttribute("class", "selection");
    mark.setAttribute("height", "100%");
    this.#host.querySelector(".tl-grid").append(mark);
    this.#host.classList.add("selecting");
    return mark;
  }

  #release() {
    const drag = this.#drag;
    if (drag === null) return;
    this.letGo();
    if (drag.mark === null) return;
    // The click that ends a drag on a row is not meant for the row.
    addEventListener("click", (event) => event.preventDefault(), { capture: true, once: true });
    setTimeout(() => dispatchEvent(new Event("click", { cancelable: true })));
    this.#choose(...[drag.from, drag.to].map((x) => this.#percent(x)).sort((a, b) => a - b));
  }

  letGo() {
    this.#drag?.mark?.remove();
    this.#drag = null;
    this.#host.classList.remove("selecting");
  }

  // Turns that come quickly one after another are one step.
  #turn(event) {
    if (!event.ctrlKey || this.#plot === undefined) return;
    event.preventDefault();
    this.#wheel.turns += Math.sign(event.deltaY);
    this.#wheel.x = event.clientX;
    clearTimeout(this.#wheel.timer);
    this.#wheel.timer = setTimeout(() => this.#stepAt(this.#wheel.x), WHEEL_REST_MS);
  }

  #stepAt(clientX) {
    const turns = this.#wheel.turns;
    this.#wheel.turns = 0;
    if (turns > 0) return this.#wider();
    const edge = Number(this.#host.dataset.edge);
    const percent = this.#percent(clientX);
    return turns < 0 ? this.#choose(percent / 2, (percent + edge) / 2) : undefined;
  }

  #choose(left, right) {
    const [t0, t1] = [left, right].map((percent) => this.#timeAt(percent));
    if (t1 > t0) this.#select(t0, t1);
  }
}
