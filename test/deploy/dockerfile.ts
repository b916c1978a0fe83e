import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';

/** What an image of a Dockerfile's stage has and runs. */
export interface Stage {
  /** Files of the repository, and their places in /app. */
  readonly copies: readonly (readonly [from: string, to: string])[];
  readonly user: string;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
}

/** Reads the stages of a Dockerfile by name; each has what its base has. */
export function readStages(text: string): ReadonlyMap<string, Stage> {
  const stages = new Map<string, Stage>();
  let name = '';
  for (const line of text.split('\n')) {
    const [, word = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    const known = stages.get(name);
    if (word === 'FROM') {
      const [base = '', , own = ''] = rest.split(' ');
      name = own;
      stages.set(name, stages.get(base) ?? { copies: [], user: 'root', entrypoint: [], command: [] });
    } else if (known) stages.set(name, { ...known, ...changeOf(known, word, rest) });
  }
  return stages;
}

function changeOf(known: Stage, word: string, rest: string): Partial<Stage> {
  if (word === 'USER') return { user: rest };
  if (word === 'ENTRYPOINT') return { entrypoint: JSON.parse(rest) as string[] };
  if (word === 'CMD') return { command: JSON.parse(rest) as string[] };
  if (word !== 'COPY') return {};
  const places = rest.split(' ');
  const to = places.pop() ?? '';
  const added = places.map((from): readonly [string, string] => [
    from,
    to.endsWith('/') ? path.join(to, from) : to,
  ]);
  return { copies: [...known.copies, ...added] };
}

/** Makes the image's /app in a folder, with the packages of the repository. */
export function makeImage({ copies }: Stage, root: string, folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const [from, to] of copies) cpSync(path.join(root, from), path.join(folder, to), { recursive: true });
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
}
