import { late, within } from '../../base/runtime/within.ts';

/** What one check of `tollbook doctor` found. */
export type CheckResult =
  | {
      readonly kind: 'ok';
      /** What was checked, in a few words. */
      readonly what: string;
      /** What was found: no sentence, no secret, nothing that a peer wrote. */
      readonly found: string;
    }
  | {
      /** `fail`: payments would be refused, lost or not delivered. `warn`: the operator should know it. */
      readonly kind: 'warn' | 'fail';
      readonly what: string;
      readonly found: string;
      /** What to do, in whole sentences. */
      readonly repair: string;
    };

export type Check = () => Promise<readonly CheckResult[]>;

export function ok(what: string, found: string): CheckResult {
  return { kind: 'ok', what, found };
}

export function warn(what: string, found: string, repair: string): CheckResult {
  return { kind: 'warn', what, found, repair };
}

export function fail(what: string, found: string, repair: string): CheckResult {
  return { kind: 'fail', what, found, repair };
}

/** Runs a check, which then neither rejects nor takes longer than this: no check may keep the others from their results. */
export async function limited(
  what: string,
  timeoutMs: number,
  check: Check,
): Promise<readonly CheckResult[]> {
  try {
    const results = await within(timeoutMs, check());
    if (results !== late) return results;
    return [
      fail(what, `no answer within ${timeoutMs / 1_000} s`, 'Let this machine reach it, and run this again.'),
    ];
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return [fail(what, message, 'Repair what this error names, and run this again.')];
  }
}

/** A sentence for the operator that begins with what is wrong: what is wrong, and the rest as what to do. */
export function inTwo(text: string): { readonly found: string; readonly repair: string } {
  const [found = '', ...rest] = text.split(/(?<=\.) (?=[A-Z])/);
  return { found: withoutStop(found), repair: rest.length === 0 ? '' : `${withoutStop(rest.join(' '))}.` };
}

function withoutStop(sentence: string): string {
  return sentence.replace(/\.$/, '');
}
