import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { PackedFile } from './tarball.ts';
import { nameOf, placeOf, type UsedPackage, usedFiles } from './used-files.ts';

interface Manifest {
  readonly version: string;
  readonly [key: string]: unknown;
}

/**
 * What the program in `dist` uses of the packages in `bundled`, and of those that they depend on: the files to which imports lead, those
 * of `declarations` that are in these packages, the licences, and a manifest with the dependencies that are used. So `npm audit` and
 * `npm sbom` see each package with its version.
 */
export async function bundledFiles(
  root: string,
  dist: string,
  {
    declarations,
    ...packages
  }: {
    readonly bundled: readonly string[];
    readonly installed: readonly string[];
    readonly declarations: readonly string[];
  },
): Promise<readonly PackedFile[]> {
  const found = await usedFiles(root, dist, packages);
  for (const declaration of declarations) {
    const at = placeOf(root, declaration);
    if (at) found.get(at.place)?.files.add(at.file);
  }
  return [...found].flatMap(([place, used]) => filesOf(root, place, used));
}

function filesOf(root: string, place: string, { files, imports }: UsedPackage): PackedFile[] {
  const from = path.join(root, place);
  const named = readdirSync(from).filter((name) => /^(?:licen[cs]e|notice|copying)/i.test(name));
  // some packages have the text of their licence nowhere else
  const licences = named.length > 0 ? named : readdirSync(from).filter((name) => /^readme/i.test(name));
  // Node reads in the nearest manifest whether a file is a module
  const folders = new Set([...files].flatMap(foldersAbove));
  const manifests = [...folders].map((folder) => path.join(folder, 'package.json'));
  const present = manifests.filter((file) => existsSync(path.join(from, file)));
  const copies = [...new Set([...files, ...licences, ...present])].map((file) => ({
    name: path.join(place, file),
    content: readFileSync(path.join(from, file)),
  }));
  return [
    ...copies.filter(({ name }) => name !== path.join(place, 'package.json')),
    { name: path.join(place, 'package.json'), content: Buffer.from(manifestOf(root, place, imports)) },
  ];
}

/** Below the package's own directory. */
function foldersAbove(file: string): string[] {
  const folder = path.dirname(file);
  return folder === '.' ? [] : [folder, ...foldersAbove(folder)];
}

/** Without scripts, and without the dependencies that nothing uses here. */
function manifestOf(root: string, place: string, imports: ReadonlySet<string>): string {
  const { scripts: _, devDependencies: __, ...manifest } = readManifest(path.join(root, place));
  const own = Object.entries(manifest).filter(([key]) => !/^(?:peer|optional|bundle)/.test(key));
  const dependencies = [...imports]
    .toSorted()
    .map((other) => [nameOf(other), readManifest(path.join(root, other)).version]);
  const complete = { ...Object.fromEntries(own), dependencies: Object.fromEntries(dependencies) as object };
  return `${JSON.stringify(complete, undefined, 2)}\n`;
}

function readManifest(dir: string): Manifest {
  return JSON.parse(readFileSync(path.join(dir, 'package.json'), 'utf8')) as Manifest;
}
