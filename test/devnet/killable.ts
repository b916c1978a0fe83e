import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

/** A directory every account can reach, removed when the test is over. */
export function temporaryDir(): string {
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-test-'));
  chmodSync(dir, 0o755);
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Starts a postgres or a chain in another process; returns the number of its process and how to kill its parent. */
export async function startInChild(
  what: 'postgres' | 'chain',
  where: string,
): Promise<{ pid: number; killParent: () => Promise<void> }> {
  const script = path.join(import.meta.dirname, 'fixtures/start-and-wait.ts');
  const parent = spawn(process.execPath, [script, what, where], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {},
  });
  onTestFinished(() => {
    parent.kill('SIGKILL');
  });
  const pid = await announcedPid(parent.stdout);
  return {
    pid,
    killParent: async () => {
      const gone = once(parent, 'exit');
      parent.kill('SIGKILL');
      await gone;
    },
  };
}

function announcedPid(stdout: Readable): Promise<number> {
  return new Promise((resolve, reject) => {
    stdout.once('data', (line: Buffer) => resolve(Number(line.toString('utf8'))));
    stdout.once('end', () => reject(new Error('the child ended without starting anything')));
  });
}

/** Resolves once the condition holds; what never holds runs into the test's time-out. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(10);
}
