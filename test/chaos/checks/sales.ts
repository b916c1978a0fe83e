import type { Records } from '../records.ts';
import type { Violation } from './violation.ts';

/** While only hostile clients are active, honest clients get an offer, and their payments are accepted at once. */
export function* salesViolations(records: Records, mustSell: readonly string[]): Generator<Violation> {
  for (const scenario of mustSell) {
    const presentation = records.presentations.find((one) => one.scenario === scenario);
    if (!presentation) {
      yield { kind: 'sales_stopped', words: `${scenario} got no offer` };
      continue;
    }
    const refused = presentation.attempts.find(({ status }) => status !== undefined && status !== 202);
    if (refused) {
      const { status, code = '', reason = '' } = refused;
      yield { kind: 'sales_stopped', words: `${scenario} was answered ${status} ${code} ${reason}` };
    } else if (presentation.end !== 'accepted') {
      yield { kind: 'sales_stopped', words: `${scenario} got no answer to its payment` };
    }
  }
}
