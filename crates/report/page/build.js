// Makes the one script of the page: `node build.js FILE`. The licences of all packages of which
// something is in it stand at its top.

import { readFile, readdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const [file] = process.argv.slice(2);
if (!file) throw new Error("usage: node build.js FILE");

const { metafile, outputFiles } = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.js"],
  alias: {
    "d3-interpolate": "./src/without-transitions.js",
    "d3-transition": "./src/without-transitions.js",
  },
  bundle: true,
  charset: "utf8",
  format: "iife",
  legalComments: "none",
  metafile: true,
  minify: true,
  target: "es2022",
  write: false,
});
const [{ inputs }] = Object.values(metafile.outputs);
const bundled = Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
const packages = new Set(bundled.flatMap(([path]) => path.match(/(?<=node_modules\/)[^/]+/) ?? []));
const notices = await Promise.all([...packages].sort().map(notice));
await writeFile(file, `/*!\n${grouped(notices)}\n*/\n${outputFiles[0].text}`);

async function notice(name) {
  const folder = `${here}node_modules/${name}`;
  const { version } = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
  const licence = (await readdir(folder)).find((it) => /^licen[cs]e/i.test(it));
  const text = await readFile(`${folder}/${licence}`, "utf8");
  return { title: `${name} ${version}`, text: text.trim() };
}

/** Packages under the same words share them. */
function grouped(notices) {
  const titles = new Map();
  for (const { title, text } of notices) titles.set(text, [...(titles.get(text) ?? []), title]);
  return [...titles].map(([text, of]) => `${of.join(", ")}\n\n${text}`).join("\n\n");
}
