// A list of any number of rows: only those in sight are elements. Keys: arrows, Page Up and Down, Home, End, Enter.

import { count, fill, h } from "./dom.js";

const ROW = 46;
/** Elements cannot be higher than about 33 million pixels; above this height, a pixel is more than a pixel of rows. */
const MOST_PIXELS = 12_000_000;

export class List {
  /** `render(row)` returns the content of a row, `open(row, index)` is called for the chosen one. */
  constructor({ label, render, open, isChosen }) {
    Object.assign(this, { render, open, isChosen });
    this.name = `list-${(List.last = (List.last || 0) + 1)}`;
    this.active = 0;
    this.content = h("div", { class: "list-rows", role: "presentation" });
    this.view = h("div", {
      class: "list", role: "listbox", tabindex: "0", "aria-label": label,
      onscroll: () => this.schedule(),
      onkeydown: (event) => this.onKey(event),
    }, this.content);
    this.status = h("p", { class: "list-status", role: "status" });
    this.element = h("div", { class: "list-box" }, this.status, this.view);
    new ResizeObserver(() => this.schedule()).observe(this.view);
  }

  /** Shows other rows; `note` says what they are. */
  set(rows, note, keepPlace = false) {
    this.rows = rows;
    this.content.style.height = `${Math.min(rows.size * ROW, MOST_PIXELS)}px`;
    if (!keepPlace) {
      this.view.scrollTop = 0;
      this.active = 0;
    }
    fill(this.status, note);
    this.draw();
  }

  schedule() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  /** Rows of one pixel of the height. */
  get scale() {
    const room = Math.min(this.rows.size * ROW, MOST_PIXELS) - this.view.clientHeight;
    return room > 0 ? (this.rows.size * ROW - this.view.clientHeight) / room : 1;
  }

  draw() {
    if (!this.rows) return;
    const top = this.view.scrollTop * this.scale;
    const first = Math.max(0, Math.floor(top / ROW) - 2);
    const last = Math.min(this.rows.size, Math.ceil((top + this.view.clientHeight) / ROW) + 2);
    const drawn = (this.drawn = {});
    const elements = [];
    for (let index = first; index < last; index += 1) {
      const element = h("div", {
        class: "list-row", role: "option", id: `${this.name}-${index}`,
        "aria-setsize": this.rows.size, "aria-posinset": index + 1,
        "aria-selected": String(index === this.active),
        onclick: () => this.choose(index),
      }, h("span", { class: "soft" }, "…"));
      element.style.transform = `translateY(${index * ROW - top + this.view.scrollTop}px)`;
      elements.push(element);
      const rows = this.rows;
      rows.row(index).then((row) => {
        if (this.drawn !== drawn || this.rows !== rows) return;
        fill(element, this.render(row));
        element.classList.toggle("chosen", Boolean(this.isChosen && this.isChosen(row)));
      }, (error) => fill(element, h("span", { role: "alert" }, error.message)));
    }
    fill(this.content, elements);
    if (this.rows.size) this.view.setAttribute("aria-activedescendant", `${this.name}-${this.active}`);
    else this.view.removeAttribute("aria-activedescendant");
  }

  async choose(index) {
    this.active = index;
    this.open(await this.rows.row(index), index);
    this.draw();
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.view.clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" && this.rows.size) this.choose(this.active);
    else if (event.key in steps) {
      this.active = Math.max(0, Math.min(this.rows.size - 1, this.active + steps[event.key]));
      this.reveal();
    } else return;
    event.preventDefault();
  }

  reveal() {
    const height = this.view.clientHeight;
    const top = this.view.scrollTop * this.scale;
    const place = this.active * ROW;
    if (place < top) this.view.scrollTop = place / this.scale;
    else if (place + ROW > top + height) this.view.scrollTop = (place + ROW - height) / this.scale + 1;
    this.draw();
  }
}

/** `1,234 rows`, or how far a pass over them is. */
export function sizeNote(rows, what) {
  if (rows.isWhole) return `${count(rows.size)} ${what}`;
  return `${count(rows.size)} ${what} among the first ${count(rows.seen)} of ${count(rows.of)}`;
}
