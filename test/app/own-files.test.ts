import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../../src/app/logger.ts';
import { startChain } from '../../src/devnet/chain.ts';
import { eventually } from '../support/wait.ts';

function folder(): string {
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-own-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

const modeOf = (file: string): string => (statSync(file).mode & 0o777).toString(8);

/** A logger that has opened its file, which it does in the background. */
async function openLogger(file: string): Promise<void> {
  createLogger('info', file).info('opened');
  await eventually(() => expect(readFileSync(file, 'utf8')).toContain('opened'));
}

test('the log of a gateway is its owner’s alone, also one that was there before', async () => {
  const file = path.join(folder(), 'gateway.log');
  await openLogger(file);
  expect(modeOf(file)).toBe('600');
  const earlier = path.join(folder(), 'gateway.log');
  writeFileSync(earlier, 'a line\n', { mode: 0o644 });
  await openLogger(earlier);
  expect(modeOf(earlier)).toBe('600');
});

test('the state of the local chain is its owner’s alone', async () => {
  const stateFile = path.join(folder(), 'chain.json');
  const chain = await startChain({ stateFile });
  await chain.stop();
  expect(modeOf(stateFile)).toBe('600');
});
