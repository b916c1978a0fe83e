import type { LedgerEvent } from '../../ledger/rules/event.ts';

interface Closed {
  readonly fromMs: number;
  readonly toMs: number;
  readonly report: string;
  readonly operator: string;
  isReviewed: boolean;
}

/** The periods of the books: closed one after the other, reviewed by another person, and opened again from the last one on. */
export class PeriodCheck {
  readonly #closed: Closed[] = [];

  /** Applies the next event. Returns the problem, or undefined where it is legal or about something else. */
  apply(event: LedgerEvent): string | undefined {
    if (event.type === 'operator_period_closed') {
      const { from_ms: fromMs, to_ms: toMs, report_sha256: report, operator } = event.data;
      const last = this.#closed.at(-1);
      if (fromMs >= toMs) return 'the period ends before it begins';
      if (last && last.toMs !== fromMs) return 'it does not begin where the last closed period ends';
      this.#closed.push({ fromMs, toMs, report, operator, isReviewed: false });
      return undefined;
    }
    if (event.type !== 'operator_period_reviewed' && event.type !== 'operator_period_reopened')
      return undefined;
    const { from_ms: fromMs, to_ms: toMs, operator } = event.data;
    const found = this.#closed.find((one) => one.fromMs === fromMs && one.toMs === toMs);
    if (!found) return 'the period is not closed';
    if (event.type === 'operator_period_reopened') {
      if (found !== this.#closed.at(-1)) return 'a later period is closed';
      this.#closed.pop();
      return undefined;
    }
    if (found.isReviewed) return 'the period was reviewed before';
    if (found.operator.toLowerCase() === operator.toLowerCase()) return 'the person who closed it reviews it';
    if (found.report !== event.data.report_sha256) return 'it reviews another report than that of the close';
    found.isReviewed = true;
    return undefined;
  }
}
