import { execFile, execFileSync } from 'node:child_process';
import path from 'node:path';
import { expect } from 'vitest';
import { processEnvironment } from '../../src/base/config/environment.ts';
import { testSigner } from './log.ts';

const verifier = path.join(import.meta.dirname, '../independent/verify.py');
const env = { PATH: processEnvironment()['PATH'] ?? '' };

export interface IndependentVerdict {
  readonly isSound: boolean;
  readonly text: string;
}

const isInstalled = (() => {
  try {
    execFileSync('python3', ['--version'], { stdio: 'ignore', env });
    return true;
  } catch {
    process.stderr.write(
      '\n*** NOT CHECKED: THE INDEPENDENT VERIFIER WANTS python3, WHICH IS NOT INSTALLED\n\n',
    );
    return false;
  }
})();

/** What the verifier in another language says of an export; undefined if its language is not installed. */
export async function verifyIndependently(
  file: string,
  checkpoints: readonly string[],
): Promise<IndependentVerdict | undefined> {
  if (!isInstalled) return undefined;
  const given = checkpoints.flatMap((checkpoint) => ['--checkpoint', checkpoint]);
  return new Promise((resolve) => {
    execFile(
      'python3',
      [verifier, file, ...given, '--pubkey', testSigner.verifierKeys[0]],
      { env },
      (error, stdout, stderr) => resolve({ isSound: error === null, text: stdout + stderr }),
    );
  });
}

/** Nothing is expected if it could not be asked, which was said loudly. */
export function expectIndependent(
  verdict: IndependentVerdict | undefined,
  isSound: boolean,
  words?: RegExp | string,
): void {
  if (!verdict) return;
  if (words !== undefined) expect(verdict.text).toMatch(words);
  expect(verdict).toMatchObject(
    isSound ? { isSound, text: expect.not.stringContaining('WRONG') } : { isSound },
  );
}
