// Nothing from a record acts in the page, and nothing could.

import { deepEqual, ok } from "node:assert/strict";

import { opened } from "./opened.js";

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
      const refused = await tab.evaluate(async () => {
        const seen = [];
        document.addEventListener("securitypolicyviolation", (event) =>
          seen.push(event.effectiveDirective),
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
        await new Promise((done) => setTimeout(done, 50));
        return { seen: seen.sort(), ran: window.ran ?? false };
      });
      deepEqual(refused, {
        seen: ["connect-src", "img-src", "script-src-attr", "script-src-elem", "style-src-attr", "style-src-elem"],
        ran: false,
      });
      // All of it was heard, as any of it would be in the other checks.
      const said = heard.splice(0).filter((it) => it.startsWith("console: "));
      ok(said.length >= refused.seen.length, said.join("\n"));
    }),
  );
}
