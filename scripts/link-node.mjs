// npm before 11.7 or so leaves out .bin/node when several platform packages carry the same bin, so this script links it.
import { existsSync, readdirSync, symlinkSync } from 'node:fs';

const modules = new URL('../node_modules/', import.meta.url);
const link = new URL('.bin/node', modules);

if (process.platform !== 'win32' && existsSync(modules) && !existsSync(link)) {
  const runtime = readdirSync(modules).find(
    (name) =>
      /^node-(?:bin-)?(?:linux|darwin)-/.test(name) && existsSync(new URL(`${name}/bin/node`, modules)),
  );
  if (runtime) symlinkSync(`../${runtime}/bin/node`, link);
}
