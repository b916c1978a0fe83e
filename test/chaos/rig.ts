import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** What was started and must end. */
export interface Scope {
  /** Ends this with the scope: what has started last ends first. */
  defer(end: () => unknown): void;
  /** The same for what can be closed, which is returned. */
  keep<T extends { close(): Promise<unknown> }>(started: T): T;
  close(): Promise<void>;
}

/** A scope with a folder, in which its processes keep their files. */
export interface Rig extends Scope {
  /** Every account may enter it: PostgreSQL runs as another user. */
  readonly dir: string;
  /** The output of a process, by the name of its file. */
  log(name: string, text: () => string): void;
  /** Leaves the folder, with these logs, when the rig is over. Returns its path. */
  keepLogs(): string;
}

export function createScope(): Scope {
  const ends: (() => unknown)[] = [];
  return {
    defer: (end) => void ends.push(end),
    keep(started) {
      ends.push(() => started.close());
      return started;
    },
    async close() {
      for (const end of ends.splice(0).toReversed()) await end();
    },
  };
}

const signals = ['SIGINT', 'SIGTERM'] as const;

/** Runs a rig, and ends all that it started, also when the process is interrupted. */
export async function withRig<T>(use: (rig: Rig) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-rig-'));
  chmodSync(dir, 0o755);
  const scope = createScope();
  const logs = new Map<string, () => string>();
  let isKept = false;
  const end = async (): Promise<void> => {
    await scope.close();
    if (isKept) for (const [name, text] of logs) writeFileSync(path.join(dir, name), text());
    else rmSync(dir, { recursive: true, force: true });
  };
  const onSignal = (): void => void end().finally(() => process.exit(130));
  for (const signal of signals) process.once(signal, onSignal);
  try {
    return await use({
      ...scope,
      dir,
      log: (name, text) => void logs.set(name, text),
      keepLogs() {
        isKept = true;
        return dir;
      },
    });
  } finally {
    for (const signal of signals) process.off(signal, onSignal);
    await end();
  }
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
