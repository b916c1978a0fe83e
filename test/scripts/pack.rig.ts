import { execFile } from 'node:child_process';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Lockfile } from '../../scripts/lockfile.ts';
import { type PackedProject, packProject, readManifest } from '../support/packed-project.ts';
import { root } from '../support/pages.ts';
import { slowness } from '../support/processor.ts';

const run = promisify(execFile);

let packed: PackedProject;
beforeAll(async () => {
  packed = await packProject();
});
afterAll(() => packed.remove());

/** The directories of the packages in a package, also of those within another's. */
async function bundledPlaces(dir: string): Promise<readonly string[]> {
  const names = await readdir(path.join(dir, 'node_modules'), { recursive: true });
  return names
    .filter((name) =>
      /^(?:(?:@[^/]+\/)?[^/@]+\/node_modules\/)*(?:@[^/]+\/)?[^/@]+\/package\.json$/.test(name),
    )
    .map((name) => `node_modules/${path.dirname(name)}`);
}

test('the packed packages contain the files they need and no others, and run no script when they are installed', async () => {
  const gateway = path.join(packed.consumer, 'node_modules/tollbook');
  const own = ['bin.mjs', 'index.mjs', 'node-version.mjs', 'pricing.mjs', 'proto'];
  expect((await readdir(gateway)).toSorted()).toEqual(
    [
      'LICENSE',
      'README.md',
      'config',
      'deploy',
      'dist',
      'migrations',
      'node_modules',
      'package.json',
      ...own,
    ].toSorted(),
  );
  expect(await readdir(path.join(gateway, 'migrations'))).toEqual(
    await readdir(path.join(root, 'migrations')),
  );
  expect(await readdir(path.join(gateway, 'config'))).toEqual(['example.toml']);
  const runner = path.join(packed.consumer, 'node_modules/@tollbook/runner');
  expect((await readdir(runner)).toSorted()).toEqual(['LICENSE', 'README.md', 'dist', 'package.json']);
  expect((await readdir(path.join(runner, 'dist'))).toSorted()).toEqual(['base', 'runner']);
  for (const dir of [gateway, runner]) {
    const compiled = await readdir(path.join(dir, 'dist'), { recursive: true });
    expect(compiled.filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))).toEqual([]);
    // a script, or a package that brings a Node, a database or a chain, would change its user's project
    const { scripts, optionalDependencies } = await readManifest(dir);
    expect([scripts, optionalDependencies]).toEqual([undefined, undefined]);
  }
});

test('the packages are made in under thirty seconds of a processor, and the gateway takes at most 60 MB with all that npm installs with it', async () => {
  const dirs = ['tollbook', ...packed.installed].map((name) =>
    path.join(packed.consumer, 'node_modules', name),
  );
  const { stdout } = await run('du', ['-smLc', ...dirs]);
  const megabytes = Number(/(\d+)\ttotal/.exec(stdout)?.[1]);
  process.stderr.write(`packed in ${packed.processorSecs} s of processor time: ${megabytes} MB\n`);
  expect(packed.processorSecs).toBeLessThan(30 * slowness);
  expect(megabytes).toBeGreaterThan(10);
  expect(megabytes).toBeLessThanOrEqual(60);
});

test('the bundled packages are those of the lockfile, in its versions, with their licences and without scripts', async () => {
  const { packages } = JSON.parse(await readFile(path.join(root, 'package-lock.json'), 'utf8')) as Lockfile;
  const gateway = path.join(packed.consumer, 'node_modules/tollbook');
  const { dependencies, bundleDependencies } = await readManifest(gateway);
  const places = await bundledPlaces(gateway);
  expect(places).toEqual(expect.arrayContaining(bundleDependencies.map((name) => `node_modules/${name}`)));
  expect(packed.installed).toEqual(['secp256k1']);
  for (const place of places) {
    const manifest = await readManifest(path.join(gateway, place));
    const locked = packages[place];
    expect({ place, version: manifest.version, scripts: manifest['scripts'] }).toEqual({
      place,
      version: locked?.version,
      scripts: undefined,
    });
    const licences = async (dir: string) =>
      (await readdir(path.join(dir, place))).filter((name) => /^(?:licen[cs]e|notice|copying)/i.test(name));
    const inRoot = await licences(root);
    expect(await licences(gateway)).toEqual(inRoot);
    // where a package has its licence in its README alone, that is there
    const readmes = (await readdir(path.join(root, place))).filter((name) => /^readme/i.test(name));
    const packedNames = inRoot.length > 0 ? inRoot : readmes;
    expect(await readdir(path.join(gateway, place))).toEqual(expect.arrayContaining(packedNames));
    // npm installs nothing besides
    for (const [name, version] of Object.entries(manifest.dependencies)) {
      const at = [`${place}/node_modules/${name}`, `node_modules/${name}`].find((one) =>
        places.includes(one),
      );
      const found =
        at === undefined ? dependencies[name] : (await readManifest(path.join(gateway, at))).version;
      expect([place, name, found]).toEqual([place, name, version]);
    }
  }
});

test('every package that the gateway imports, now or when a feature needs it, can be imported', async () => {
  const dist = path.join(packed.consumer, 'node_modules/tollbook/dist');
  const specifiers = new Set<string>();
  for (const name of await readdir(dist, { recursive: true }))
    if (name.endsWith('.js'))
      for (const [, specifier = ''] of (await readFile(path.join(dist, name), 'utf8')).matchAll(
        /^(?!\s*(?:\*|\/\/)).*(?:\bfrom |\bimport\()'(@?[a-z][\w./@:-]*)'/gm,
      ))
        specifiers.add(specifier);
  const others = [...specifiers].filter((one) => !/^(?:node:|@x402\/|openai$)/.test(one));
  expect(others).toEqual(
    expect.arrayContaining(['viem', 'better-auth', 'gpt-tokenizer/encoding/o200k_base']),
  );
  const script = `
    const { commands } = await import('./app/cli/commands.js');
    // some need the official client, which their users install
    for (const { load } of Object.values(commands))
      await load().catch((error) => {
        if (!error.message.includes("package '@x402/")) throw error;
      });
    for (const specifier of ${JSON.stringify(others)}) await import(specifier);
    process.exit(0);`;
  await writeFile(path.join(dist, 'imports.js'), script);
  await run(process.execPath, [path.join(dist, 'imports.js')], { cwd: packed.consumer, env: packed.env });
  await rm(path.join(dist, 'imports.js'));
});

test('the runner library has no dependencies and under a megabyte', async () => {
  const dir = path.join(packed.consumer, 'node_modules/@tollbook/runner');
  const { dependencies, peerDependencies } = await readManifest(dir);
  expect([dependencies, peerDependencies]).toEqual([undefined, undefined]);
  const files = await readdir(dir, { recursive: true, withFileTypes: true });
  const sizes = await Promise.all(
    files
      .filter((one) => one.isFile())
      .map(async (one) => (await stat(path.join(one.parentPath, one.name))).size),
  );
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(1_000_000);
});
