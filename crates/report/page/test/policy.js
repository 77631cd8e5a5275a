// Nothing from a record acts in the page, and nothing could.

import { deepEqual, equal, ok } from "node:assert/strict";

import { eventually, opened } from "./opened.js";

/** What the page's policy refuses below, by the directive that refuses it. */
const DIRECTIVES = [
  "connect-src",
  "img-src",
  "script-src-attr",
  "script-src-elem",
  "style-src-attr",
  "style-src-elem",
];

export async function run({ browser, page, check }) {
  await check("nothing but the page's own script and style is in it", () =>
    opened({ browser, page }, {}, async (tab) => {
      const found = await tab.evaluate(() => {
        const all = [...document.querySelectorAll("*")];
        const attributes = all.flatMap((it) => [...it.attributes].map(({ name }) => name));
        return {
          counts: ["script", "style", "img, iframe, object, embed, link, base, form, foreignObject"]
            .map((it) => document.querySelectorAll(it).length),
          handlers: attributes.filter((it) => it.startsWith("on")),
          links: all
            .flatMap((it) => [it.getAttribute("href"), it.getAttribute("src")])
            .filter((it) => it && !it.startsWith("#") && !it.startsWith("data:application/json;")),
          controls: document.documentElement.textContent.match(
            /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2066-\u2069]/g,
          ),
        };
      });
      deepEqual(found, { counts: [1, 1, 0], handlers: [], links: [], controls: null });
    }),
  );
  await check("its policy refuses what it was made to refuse", () =>
    opened({ browser, page }, {}, async (tab, heard) => {
      await tab.evaluate(async () => {
        window.refused = [];
        document.addEventListener("securitypolicyviolation", (event) =>
          window.refused.push(event.effectiveDirective),
        );
        const main = document.querySelector("main");
        const add = (name, attributes, text = "") =>
          main.append(Object.assign(document.createElement(name), attributes, { textContent: text }));
        add("script", {}, "window.ran = true");
        add("style", {}, "body { display: none }");
        add("img", { src: "http://127.0.0.1:9/", onerror: undefined });
        main.insertAdjacentHTML("beforeend", "<p style='color: red' onclick='window.ran = true'></p>");
        main.lastChild.click();
        await fetch("http://127.0.0.1:9/").catch(() => {});
      });
      const refused = () => tab.evaluate(() => window.refused.toSorted());
      await eventually(async () => (await refused()).length >= DIRECTIVES.length);
      deepEqual(await refused(), DIRECTIVES);
      equal(await tab.evaluate(() => window.ran), undefined);
      // All of it was heard, as any of it would be in the other checks.
      const said = () => heard.filter((it) => it.startsWith("console: "));
      await eventually(() => said().length >= DIRECTIVES.length);
      ok(said().length >= DIRECTIVES.length, said().join("\n"));
      // Some of it is said twice.
      await tab.waitForTimeout(100);
      heard.splice(0);
    }),
  );
}
