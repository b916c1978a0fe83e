/** `node bench/top.ts FILE [ROWS]`: the time of a CPU profile by function. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { say } from '../src/base/terminal/terminal.ts';
import { fileURLToPath } from 'node:url';

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const root = path.join(import.meta.dirname, '..');

/** The functions with the most self time, and Tollbook's functions with the most total time. */
export function topOf(file: string, rows = 40): string {
  const profile = JSON.parse(readFileSync(file, 'utf8')) as CpuProfile;
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const parents = new Map(
    profile.nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])),
  );
  const self = new Map<string, number>();
  const total = new Map<string, number>();
  let busy = 0;
  for (const [i, id] of profile.samples.entries()) {
    const timeUs = profile.timeDeltas[i] ?? 0;
    const node = nodes.get(id);
    if (!node || node.callFrame.functionName === '(idle)') continue;
    busy += timeUs;
    add(self, nameOf(node), timeUs);
    const seen = new Set<string>();
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const caller = nodes.get(at);
      if (caller) seen.add(nameOf(caller));
    }
    for (const name of seen) add(total, name, timeUs);
  }
  const list = (times: Map<string, number>, isShown: (name: string) => boolean): string =>
    [...times]
      .filter(([name]) => isShown(name))
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, rows)
      .map(([name, timeUs]) => `${((100 * timeUs) / busy).toFixed(1).padStart(6)} %  ${name}`)
      .join('\n');
  return [
    'Time of its own:',
    list(self, () => true),
    'With all it calls, in src/:',
    list(total, (name) => / src\//.test(name)),
  ].join('\n');
}

function add(times: Map<string, number>, name: string, timeUs: number): void {
  times.set(name, (times.get(name) ?? 0) + timeUs);
}

function nameOf({ callFrame: { functionName, url, lineNumber } }: CpuProfile['nodes'][number]): string {
  const place = url.startsWith('file:') ? path.relative(root, fileURLToPath(url)) : url;
  return `${functionName || '(anonymous)'} ${place}${place ? `:${lineNumber + 1}` : ''}`;
}

const [, script, file, rows] = process.argv;
if (script === import.meta.filename && file !== undefined) say(topOf(file, Number(rows ?? 40)));
