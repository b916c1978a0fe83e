import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { processEnvironment } from '../../../base/config/environment.ts';
import { say } from '../../../base/terminal/terminal.ts';
import { removeState, unfinishedMark } from './development-config.ts';

const program = new URL('demo/process.ts', import.meta.url);

/** Deletes the rest of an interrupted making of demo data: its clocks are wrong. */
export function removeUnfinishedDemoData(dir: string): void {
  if (!existsSync(path.join(dir, unfinishedMark))) return;
  say('The demo data of the last start was not finished: its state is deleted.');
  removeState(dir);
}

/**
 * Makes a month of activity in a folder without state, in a separate process, since the clock of that process is not the machine's.
 * A folder with state stays unchanged. False where it was stopped before its end; the folder has no state then.
 * @throws where it fails
 */
export async function makeDemoData(dir: string, port: string, signal: Promise<unknown>): Promise<boolean> {
  if (existsSync(path.join(dir, 'postgres'))) {
    say('This folder has data already, which stays unchanged: --fresh --demo-data makes demo data instead.');
    return true;
  }
  say('Making a month of demo data, which takes a minute or two:');
  const mark = path.join(dir, unfinishedMark);
  writeFileSync(mark, '');
  const { PATH = '' } = processEnvironment();
  const child = spawn(process.execPath, [fileURLToPath(program), '--dir', dir, '--port', port], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { PATH },
    // Ctrl-C in the terminal reaches it by this process alone
    detached: true,
  });
  const ended = once(child, 'exit').then(([code]) => ({ code: code as number | null }));
  const first = await Promise.race([ended, signal.then(() => undefined)]);
  if (!first) {
    child.kill('SIGTERM');
    await ended;
  }
  if (first?.code === 0) {
    rmSync(mark);
    return true;
  }
  removeState(dir);
  if (first) throw new Error('the demo data could not be made, and its state was deleted: see above');
  return false;
}
