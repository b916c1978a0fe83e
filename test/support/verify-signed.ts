import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { isInstalledWith, packageEnvironment } from './installed.ts';

const script = path.join(import.meta.dirname, '../independent/verify_signed.py');
/** The second one is the system's, which has the packages of its distribution. */
const interpreters = ['python3', '/usr/bin/python3'];
const python = interpreters.find((each) => isInstalledWith(each, ['-c', 'import jwt, cryptography']));
if (python === undefined)
  process.stderr.write(
    '\n*** NOT CHECKED IN PYTHON: SIGNED OFFERS AND RECEIPTS WANT PyJWT AND cryptography\n\n',
  );

export interface SignedCase {
  readonly did: object;
  readonly kind: 'offer' | 'receipt';
  readonly signed: object;
}

export type Verdict = { readonly payload: unknown } | { readonly wrong: string };

/** What another implementation says of signed offers and receipts; undefined if it is not installed, which was said loudly. */
export function verifySigned(cases: readonly SignedCase[]): readonly Verdict[] | undefined {
  if (python === undefined) return undefined;
  const input = JSON.stringify(cases);
  const text = execFileSync(python, ['-B', script], { input, env: packageEnvironment() });
  return JSON.parse(text.toString()) as Verdict[];
}
