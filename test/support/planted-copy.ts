import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export const repositoryRoot = path.resolve(import.meta.dirname, '../..');

/** One exact replacement in a file of the program. */
export interface Edit {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** A plausible bug, which is put into a copy of the program. */
export interface Bug {
  readonly name: string;
  readonly edits: readonly Edit[];
}

/** A bug as a row of a table: most have one edit. */
export interface BugRow extends Edit {
  readonly name: string;
  readonly also?: readonly Edit[];
}

/** The row with its edits in a list. */
export function withEdits<T extends BugRow>({ file, find, replace, also = [], ...more }: T) {
  return { ...more, edits: [{ file, find, replace }, ...also] };
}

/** The text after an edit. Throws unless the text to replace occurs exactly once. */
export function applyEdit(text: string, { file, find, replace }: Edit): string {
  const times = text.split(find).length - 1;
  if (times !== 1)
    throw new Error(`the text of a planted bug occurs ${times} times in ${file}, not once: ${find}`);
  return text.replace(find, () => replace);
}

export interface PlantedCopy {
  readonly root: string;
  remove(): void;
}

/** What the program needs to run; its tests need everything that is not made. */
const programParts: readonly string[] = ['src', 'migrations', 'scripts', 'package.json'];
const madeParts: readonly string[] = ['.git', '.tollbook', 'coverage', 'dist', 'node_modules'];

/** A copy of the program with a planted bug, outside the repository. */
export function makePlantedCopy({ name, edits }: Bug, { withTests = false } = {}): PlantedCopy {
  const root = mkdtempSync(path.join(tmpdir(), `tollbook-plant-${name}-`));
  const filter = (source: string): boolean => {
    const from = path.relative(repositoryRoot, source);
    if (madeParts.includes(path.basename(from))) return false;
    return from === '' || withTests || programParts.includes(from.split(path.sep, 1)[0] ?? '');
  };
  cpSync(repositoryRoot, root, { recursive: true, filter });
  symlinkSync(path.join(repositoryRoot, 'node_modules'), path.join(root, 'node_modules'));
  for (const edit of edits) {
    const file = path.join(root, edit.file);
    writeFileSync(file, applyEdit(readFileSync(file, 'utf8'), edit));
  }
  return { root, remove: () => rmSync(root, { recursive: true, force: true }) };
}
