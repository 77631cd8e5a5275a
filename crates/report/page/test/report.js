// What was checked, and what became of it.

/** No check takes so long, in milliseconds: one that does hangs. */
const PATIENCE_MS = 120_000;

export class Report {
  #passed = 0;
  #failed = 0;

  /** A check fails by throwing. What is thrown is said, and the other checks go on. */
  async check(page, what, body) {
    const began = performance.now();
    const line = () => `${page}: ${what} (${((performance.now() - began) / 1000).toFixed(1)} s)`;
    try {
      await Promise.race([body(), tooLong()]);
      this.#passed += 1;
      console.log(`ok ${line()}`);
    } catch (error) {
      this.#failed += 1;
      console.log(`FAILED ${line()}\n${error?.stack ?? error}`);
    }
  }

  /** The exit code. */
  finish() {
    console.log(`${this.#passed} passed, ${this.#failed} failed`);
    return this.#failed > 0 || this.#passed === 0 ? 1 : 0;
  }
}

function tooLong() {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error("no end in sight")), PATIENCE_MS).unref();
  });
}
