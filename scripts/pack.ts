/**
 * `npm run pack -- --out DIR` makes the files that are published: `tollbook` (the gateway) and `@tollbook/runner`. The manifests in
 * packages/ say what each is; version and dependencies are those of this repository, whose own package.json installs the devnet and the
 * tools besides, and is never published.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

interface Manifest {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

const root = path.resolve(import.meta.dirname, '..');
const {
  values: { out = '.' },
} = parseArgs({ options: { out: { type: 'string' } } });
const outDir = path.resolve(out);
const { version, dependencies } = JSON.parse(
  readFileSync(path.join(root, 'package.json'), 'utf8'),
) as Manifest;

/** What each package has beside its manifest, its own files and dist/, and in dist/ beside what is compiled. */
const packages = [
  { name: 'runner', entry: 'src/runner/index.ts', copies: [], besides: [], takesDependencies: false },
  {
    name: 'gateway',
    entry: 'src',
    copies: ['migrations', 'proto', 'config/example.toml'],
    // below src/, sent to browsers as they are
    besides: ['web/pages/assets'],
    takesDependencies: true,
  },
] as const;

mkdirSync(outDir, { recursive: true });
for (const one of packages) process.stdout.write(`${pack(one)}\n`);

/** Returns the name of the packed file. */
function pack({ name, entry, copies, besides, takesDependencies }: (typeof packages)[number]): string {
  const dir = mkdtempSync(path.join(tmpdir(), `tollbook-${name}-`));
  try {
    cpSync(path.join(root, 'packages', name), dir, { recursive: true });
    for (const copy of ['LICENSE', ...copies])
      cpSync(path.join(root, copy), path.join(dir, copy), { recursive: true });
    const manifest = JSON.parse(readFileSync(path.join(dir, 'package.json'), 'utf8')) as object;
    const complete = { ...manifest, version, ...(takesDependencies ? { dependencies } : {}) };
    writeFileSync(path.join(dir, 'package.json'), `${JSON.stringify(complete, undefined, 2)}\n`);
    compile(dir, entry);
    for (const files of besides)
      cpSync(path.join(root, 'src', files), path.join(dir, 'dist', files), { recursive: true });
    const output = execFileSync('npm', ['pack', '--json', '--offline', '--pack-destination', outDir], {
      cwd: dir,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [packed] = JSON.parse(output) as readonly { readonly filename: string }[];
    return packed?.filename ?? '';
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function compile(dir: string, entry: string): void {
  const project = path.join(dir, 'tsconfig.json');
  const from = path.join(root, entry);
  const settings = {
    extends: path.join(root, 'tsconfig.build.json'),
    compilerOptions: { rootDir: path.join(root, 'src'), outDir: path.join(dir, 'dist') },
    include: [from],
  };
  writeFileSync(project, JSON.stringify(settings));
  symlinkSync(path.join(root, 'node_modules'), path.join(dir, 'node_modules'));
  execFileSync(process.execPath, [path.join(root, 'node_modules/typescript/bin/tsc'), '-p', project], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  rmSync(path.join(dir, 'node_modules'));
  rmSync(project);
}
