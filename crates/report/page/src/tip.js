// What is said of a mark or a call, beside the mouse or beside itself.

export class Tip {
  constructor() {
    this.box = element("div", "tip");
    this.box.hidden = true;
    // Those who hear the page are told the same.
    this.box.setAttribute("aria-hidden", "true");
    document.querySelector("main").append(this.box);
  }

  show(lines, path, at) {
    this.box.replaceChildren(...lines.map((line) => element("div", "", line)));
    this.box.hidden = false;
    if (at) this.place(at.clientX + 12, at.clientY + 16);
    else this.beside(path);
  }

  beside(path) {
    const { left, bottom } = path.getBoundingClientRect();
    this.place(left, bottom + 4);
  }

  place(x, y) {
    const { offsetWidth: width, offsetHeight: height } = this.box;
    this.box.style.left = `${Math.max(4, Math.min(x, innerWidth - width - 20))}px`;
    this.box.style.top = `${y + height > innerHeight ? y - height - 28 : y}px`;
  }

  hide() {
    this.box.hidden = true;
  }
}

export function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}
