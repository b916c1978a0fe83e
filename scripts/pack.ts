/**
 * `npm run pack -- --out DIR` makes the files that are published: `tollbook` (the gateway) and `@tollbook/runner`. The manifests in
 * packages/ say what each is; version and dependencies are those of this repository, whose own package.json installs the devnet and the
 * tools besides, and is never published. Types are not checked: `npm run check` does.
 */
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { bundledFiles } from './pack/bundle.ts';
import { type PackedFile, writeTarball } from './pack/tarball.ts';
import { nameOf, placeOf } from './pack/used-files.ts';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

const root = path.resolve(import.meta.dirname, '..');
const {
  values: { out = '.' },
} = parseArgs({ options: { out: { type: 'string' } } });
const outDir = path.resolve(out);
const { version, dependencies } = JSON.parse(
  readFileSync(path.join(root, 'package.json'), 'utf8'),
) as Manifest;

/** What a package has besides its manifest and files in packages/. */
interface Built {
  readonly manifest: object;
  readonly files: readonly PackedFile[];
}

/** Packages whose types are in what the gateway's package exports; with those of others, such as viem, it would be much larger. */
const typed = ['zod', 'pino', 'pino-std-serializers', 'sonic-boom', 'thread-stream', '@bufbuild/protobuf'];

mkdirSync(outDir, { recursive: true });
await pack('runner', [], (dir) => {
  compile(dir, 'src/runner/index.ts');
  return { manifest: {}, files: [] };
});
await pack(
  'gateway',
  ['migrations', 'proto', 'config/example.toml', 'deploy/create-database.sql', 'deploy/systemd'],
  async (dir) => {
    compile(dir, 'src');
    // sent to browsers as they are
    const assets = 'web/pages/assets';
    cpSync(path.join(root, 'src', assets), path.join(dir, 'dist', assets), { recursive: true });
    const declarations = keepPublicDeclarations(dir, ['dist/main.d.ts', 'dist/app/pricing/index.d.ts']);
    // native code, which its installation chooses by the platform
    const installed = ['secp256k1'];
    const bundled = Object.keys(dependencies).filter((name) => !installed.includes(name));
    const files = await bundledFiles(root, path.join(dir, 'dist'), { bundled, installed, declarations });
    return { manifest: { dependencies, bundleDependencies: bundled }, files };
  },
);

/** Makes one package: its folder in packages/, copies from the repository, and what `build` makes there or returns. */
async function pack(
  folder: string,
  copies: readonly string[],
  build: (dir: string) => Built | Promise<Built>,
): Promise<void> {
  const dir = realpathSync(mkdtempSync(path.join(tmpdir(), `tollbook-${folder}-`)));
  try {
    cpSync(path.join(root, 'packages', folder), dir, { recursive: true });
    for (const copy of ['LICENSE', ...copies])
      cpSync(path.join(root, copy), path.join(dir, copy), { recursive: true });
    const built = await build(dir);
    const manifest = JSON.parse(readFileSync(path.join(dir, 'package.json'), 'utf8')) as Manifest;
    const complete = { ...manifest, version, ...built.manifest };
    writeFileSync(path.join(dir, 'package.json'), `${JSON.stringify(complete, undefined, 2)}\n`);
    const own = globSync('**', { cwd: dir }).filter((name) => statSync(path.join(dir, name)).isFile());
    const files = own.map((name) => ({ name, content: readFileSync(path.join(dir, name)) }));
    const file = `${manifest.name.replace('@', '').replace('/', '-')}-${version}.tgz`;
    writeTarball(path.join(outDir, file), [...files, ...built.files]);
    process.stdout.write(`${file}\n`);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function compile(dir: string, entry: string): void {
  tsc(dir, {
    extends: path.join(root, 'tsconfig.build.json'),
    compilerOptions: { rootDir: path.join(root, 'src'), outDir: path.join(dir, 'dist'), noCheck: true },
    include: [path.join(root, entry)],
  });
}

/** Removes the declarations that the public ones do not need. Returns those in the packages of `typed` that they need. */
function keepPublicDeclarations(dir: string, entries: readonly string[]): readonly string[] {
  const settings = { extends: path.join(root, 'tsconfig.json'), include: [], files: entries };
  const needed = tsc(dir, settings, '--listFilesOnly').split('\n');
  const kept = new Set(needed);
  for (const file of globSync('dist/**/*.d.ts', { cwd: dir }).map((name) => path.join(dir, name)))
    if (!kept.has(file)) rmSync(file);
  return needed.filter((file) => typed.includes(nameOf(placeOf(root, file)?.place ?? '')));
}

/** Runs the compiler in `dir`, which sees the packages of the repository meanwhile. Returns its output. */
function tsc(dir: string, settings: object, ...options: readonly string[]): string {
  const project = path.join(dir, 'tsconfig.json');
  const packages = path.join(dir, 'node_modules');
  writeFileSync(project, JSON.stringify(settings));
  symlinkSync(path.join(root, 'node_modules'), packages);
  try {
    return execFileSync(
      process.execPath,
      [path.join(root, 'node_modules/typescript/bin/tsc'), '-p', project, '--checkers', '1', ...options],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
    );
  } finally {
    rmSync(packages);
    rmSync(project);
  }
}
