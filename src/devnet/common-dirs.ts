import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { isWorkedIn } from './processes.ts';

/** A directory every account can reach, and that outlives a reboot. */
const commonDir = '/var/tmp';
/** The name of the file that contains the path to which its directory belongs. */
const ownerFile = 'owner';

/**
 * Makes, or takes up again, a directory of ours below /var/tmp. Its name can be guessed, and anyone may create
 * names there, so one that is not ours alone is refused: we would run the binaries or read the data in it.
 * @returns its absolute path
 * @throws when something of that name exists that others could have prepared
 */
export function ownCommonDir(name: string): string {
  const dir = path.join(commonDir, `${ownPrefix()}${name}`);
  mkdirSync(dir, { recursive: true });
  if (!isOursAlone(dir)) throw new Error(`${dir} exists and is not ours alone: remove it and start again`);
  // regardless of the umask, other accounts need access
  chmodSync(dir, 0o755);
  return dir;
}

/**
 * A directory below /var/tmp that belongs to a path elsewhere. Each call removes the directories whose paths no longer
 * exist, so a directory is empty when its path is new.
 * @param createOwner makes sure that the path exists
 */
export function commonDirFor(purpose: string, owner: string, createOwner: (dir: string) => void): string {
  sweep(purpose);
  const name = createHash('sha256').update(owner).digest('hex').slice(0, 12);
  const dir = ownCommonDir(`${purpose}-${name}`);
  createOwner(dir);
  writeFileSync(path.join(dir, ownerFile), owner);
  return dir;
}

function sweep(purpose: string): void {
  for (const name of readdirSync(commonDir)) {
    const dir = path.join(commonDir, name);
    if (name.startsWith(`${ownPrefix()}${purpose}-`) && isVoid(dir))
      rmSync(dir, { recursive: true, force: true });
  }
}

/** One that is not tied yet is only just being made. */
function isVoid(dir: string): boolean {
  const note = path.join(dir, ownerFile);
  if (!isOursAlone(dir) || !existsSync(note) || existsSync(readFileSync(note, 'utf8'))) return false;
  return isWorkedIn(path.join(dir, 'data')) !== true;
}

function isOursAlone(dir: string): boolean {
  const found = lstatSync(dir);
  return found.isDirectory() && found.uid === (process.getuid?.() ?? 0) && (found.mode & 0o022) === 0;
}

function ownPrefix(): string {
  return `tollbook-${process.getuid?.() ?? 0}-`;
}
