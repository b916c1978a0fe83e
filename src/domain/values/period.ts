import { isRealDay } from './calendar-date.ts';

/** A span of time: `fromMs` inclusive, `toMs` exclusive, both Unix milliseconds, UTC. */
export interface Period {
  readonly fromMs: number;
  readonly toMs: number;
}

export type PeriodRefusalCode =
  | 'half_open'
  | 'not_an_instant'
  | 'reversed'
  | 'empty'
  | 'in_the_future'
  | 'not_over';

/** Why two texts are not a period. `message` is for the person who typed them. */
export interface PeriodRefusal {
  readonly code: PeriodRefusalCode;
  readonly message: string;
}

export type PeriodReading =
  | { readonly kind: 'period'; readonly period: Period }
  | { readonly kind: 'refusal'; readonly refusal: PeriodRefusal };

/**
 * Reads `--from` and `--to`: `2026-11` (the month's first instant), `2026-11-01` (midnight UTC), or RFC 3339 to the
 * millisecond. The period must be over at `nowMs`, since the books of an unfinished one would change; `Infinity` skips this
 * check.
 */
export function parsePeriod(from: string | undefined, to: string | undefined, nowMs: number): PeriodReading {
  if (from === undefined || to === undefined)
    return refusal(
      'half_open',
      `--${from === undefined ? 'from' : 'to'} is missing: a period needs both ends`,
    );
  const fromMs = parseInstant(from);
  if (fromMs === undefined) return notAnInstant('from', from);
  const toMs = parseInstant(to);
  if (toMs === undefined) return notAnInstant('to', to);
  const wrong = wrongOrder(fromMs, toMs) ?? tooEarly({ fromMs, toMs }, nowMs);
  return wrong ? { kind: 'refusal', refusal: wrong } : { kind: 'period', period: { fromMs, toMs } };
}

/** Unix milliseconds of a month, a day or an RFC 3339 time; undefined for any other text. */
export function parseInstant(text: string): number | undefined {
  const parts = instant.exec(text);
  if (!parts) return undefined;
  const [, month = '', day = '-01', time = 'T00:00:00Z'] = parts;
  if (!isRealDay(month + day)) return undefined;
  const ms = Date.parse(month + day + time.toUpperCase());
  return Number.isNaN(ms) ? undefined : ms;
}

/** RFC 3339 UTC in milliseconds, as the ledger writes times. */
export function instantText(ms: number): string {
  return new Date(ms).toISOString();
}

/** The shortest text that `parsePeriod` reads as this instant: a day where it is midnight. */
export function shortInstant(ms: number): string {
  return instantText(ms).replace('T00:00:00.000Z', '');
}

const instant =
  /^(\d{4}-\d\d)(?:(-\d\d)([Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,3})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d))?)?$/;

const oneMonth = /-01$/;

function refusal(code: PeriodRefusalCode, message: string): PeriodReading {
  return { kind: 'refusal', refusal: { code, message } };
}

function notAnInstant(end: 'from' | 'to', text: string): PeriodReading {
  const forms = '2026-11, 2026-11-01 or 2026-11-01T08:00:00Z';
  return refusal(
    'not_an_instant',
    `--${end} ${JSON.stringify(text.slice(0, 40))} is not a date or time: use ${forms}`,
  );
}

function wrongOrder(fromMs: number, toMs: number): PeriodRefusal | undefined {
  if (fromMs === toMs) return { code: 'empty', message: `the period is empty: ${emptyHint(fromMs)}` };
  if (fromMs < toMs) return undefined;
  const message = `the period is reversed: --from ${shortInstant(fromMs)} is after --to ${shortInstant(toMs)}`;
  return { code: 'reversed', message };
}

function emptyHint(ms: number): string {
  const text = shortInstant(ms);
  const why = `--to ${text} is not part of it`;
  if (!oneMonth.test(text)) return why;
  const start = new Date(ms);
  const next = Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1);
  return `${why}, so the month ${text.slice(0, 7)} ends with --to ${shortInstant(next).slice(0, 7)}`;
}

function tooEarly({ fromMs, toMs }: Period, nowMs: number): PeriodRefusal | undefined {
  if (toMs <= nowMs) return undefined;
  const now = `now it is ${instantText(nowMs)}`;
  if (fromMs >= nowMs)
    return {
      code: 'in_the_future',
      message: `the period is in the future: it begins at ${instantText(fromMs)}, ${now}`,
    };
  return {
    code: 'not_over',
    message: `the period is not over: it ends at ${instantText(toMs)}, ${now}; choose a --to in the past`,
  };
}
