import type { ClosedPeriod } from '../rules/periods/periods.ts';
import { countOf } from '../../base/values/count-text.ts';
import { periodName } from '../../base/values/period.ts';
import { utc } from '../../base/values/time-zone.ts';
import type { Comparison } from '../use-cases/periods/compare-period.ts';

/** A period's name, with its zone if that is not UTC. */
export function namedPeriod({ period }: Pick<ClosedPeriod, 'period'>): string {
  const { zone = utc } = period;
  return zone.name === utc.name ? periodName(period) : `${periodName(period)} in ${zone.name}`;
}

/** What was said of a period: who closed, reviewed and reopened it, and when. */
export function periodLine(closed: ClosedPeriod): string {
  const { close, review, reopening } = closed;
  const said = [
    `closed by ${close.data.operator} on ${close.at}`,
    review
      ? `reviewed by ${review.data.operator} on ${review.at}${review.data.reconciled ? '' : ', without the chains'}`
      : 'not reviewed',
    ...(reopening
      ? [`reopened by ${reopening.data.operator} on ${reopening.at}: ${reopening.data.reason}`]
      : []),
  ];
  return `${namedPeriod(closed)}  ${said.join('; ')}`;
}

/** Everything that a close has pinned. */
export function periodLines(closed: ClosedPeriod): string[] {
  const { head, breaks, breaks_explained, open_items, exports, despite, ...data } = closed.close.data;
  return [
    periodLine(closed),
    `  head            ${head.size} events of ${head.origin}, root ${head.root}`,
    `  reconciliation  ${data.report_sha256}: ${countOf(breaks, 'break')}, ${breaks_explained} explained, ${countOf(open_items, 'open item')}`,
    ...(despite === undefined ? [] : [`  closed despite  ${despite}`]),
    ...Object.entries(exports).map(([format, sha256]) => `  ${format.padEnd(14)}  ${sha256}`),
  ];
}

const marks = { same: 'ok     ', differs: 'WRONG  ', not_compared: '-      ' } as const;

export function comparisonLine({ of, result, words }: Comparison): string {
  return `${marks[result]}${of}${words === undefined ? '' : `: ${words}`}`;
}

/** A later run compared with the close of its period. */
export function besideClose(closed: ClosedPeriod, { result, words }: Comparison): string {
  const close = `the close of ${namedPeriod(closed)} by ${closed.close.data.operator} on ${closed.close.at}`;
  if (result === 'same') return `The same as at ${close}.`;
  return result === 'differs' ? `DIFFERS from ${close}: ${words}` : `Not compared with ${close}: ${words}`;
}
