import { type Bytes, sumOf, total, type Written } from './relations.ts';

/** One step of all payments of a run. */
export interface Step {
  readonly name: string;
  readonly grown: Bytes;
  readonly written: Written;
  /** Of PostgreSQL. */
  readonly cpuUs: number;
}

/** Rows that are deleted once their call is delivered, or their batch or follow-up is over; results after 30 days. */
const passing = /^(?:call|call_body|call_result|follow_up|lane|lane_batch|lane_counter)(?:$|_)/;
/** Of the tamper-evident log, which not every gateway has. */
const ofLog = /^log_/;

const kept = (grown: Bytes): Bytes =>
  new Map([...grown].filter(([name]) => !passing.test(name) && !ofLog.test(name)));

/** Bytes a payment, by table and index; what is less than one byte is left out. */
export function tableOf(later: readonly Step[], afterCheckpoint: readonly Step[], count: number): string {
  const each = (bytes = 0): string => (Math.abs(bytes) < count ? '' : (bytes / count).toFixed(0));
  const grown = sumOf(later.map((step) => step.grown));
  const written = sumOf(later.map((step) => step.written.bytes));
  const pages = sumOf(later.map((step) => step.written.pages));
  const atFirst = sumOf(afterCheckpoint.map((step) => step.written.bytes));
  const left = (name: string): string => (passing.test(name) ? 'deleted' : each(grown.get(name)));
  const names = [...new Set([...grown.keys(), ...written.keys()])]
    .filter((name) => each(written.get(name)) !== '' || (!passing.test(name) && each(grown.get(name)) !== ''))
    .toSorted((a, b) => (written.get(b) ?? 0) - (written.get(a) ?? 0));
  const rows = names.map((name) => [
    name,
    left(name),
    each((written.get(name) ?? 0) - (pages.get(name) ?? 0)),
    each(written.get(name)),
    each(atFirst.get(name)),
  ]);
  const all = [
    '**all, without the log**',
    each(total(kept(grown))),
    each(total(written) - total(pages)),
    each(total(written)),
    each(total(atFirst)),
  ];
  return [
    '| bytes a payment | left for ever | WAL without whole pages | WAL between checkpoints | WAL right after a checkpoint |',
    '| --- | --: | --: | --: | --: |',
    ...[...rows, all].map((cells) => `| ${cells.join(' | ')} |`),
  ].join('\n');
}

export function stepsOf(steps: readonly Step[], count: number): string {
  const cells = (of: readonly Step[]): string => {
    const left = of.reduce((sum, { grown }) => sum + total(kept(grown)), 0);
    const wal = of.reduce((sum, { written }) => sum + total(written.bytes), 0);
    const cpuUs = of.reduce((sum, step) => sum + step.cpuUs, 0);
    return [left, wal, cpuUs].map((value) => (value / count).toFixed(0)).join(' | ');
  };
  return [
    '| step | bytes left for ever | WAL bytes | PostgreSQL CPU µs |',
    '| --- | --: | --: | --: |',
    ...steps.map((step) => `| ${step.name} | ${cells([step])} |`),
    `| **all** | ${cells(steps)} |`,
  ].join('\n');
}
