import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Bug, Edit } from './plant.ts';
import { repositoryRoot } from './environment.ts';

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

/** What the program needs to run; its tests need everything. */
const programParts = ['src', 'migrations', 'scripts', 'package.json'] as const;
const testParts = ['test', 'config', 'vitest.config.ts', 'tsconfig.json'] as const;

/** A copy of the program with a planted bug, outside the repository. */
export function makePlantedCopy({ name, edits }: Bug, { withTests = false } = {}): PlantedCopy {
  const root = mkdtempSync(path.join(tmpdir(), `tollbook-plant-${name}-`));
  for (const part of [...programParts, ...(withTests ? testParts : [])]) {
    cpSync(path.join(repositoryRoot, part), path.join(root, part), { recursive: true });
  }
  symlinkSync(path.join(repositoryRoot, 'node_modules'), path.join(root, 'node_modules'));
  for (const edit of edits) {
    const file = path.join(root, edit.file);
    writeFileSync(file, applyEdit(readFileSync(file, 'utf8'), edit));
  }
  return { root, remove: () => rmSync(root, { recursive: true, force: true }) };
}
