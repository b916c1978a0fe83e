import { BooksError } from '../../../audit/rules/bookkeeping/books-error.ts';
import type { LedgerSource } from '../books/source.ts';
import { type BookFormat, bookFormats, formatsEdition } from '../../../base/values/format.ts';
import type { ClosedPeriod } from '../../rules/periods/periods.ts';
import { allClasses } from '../../rules/reconcile/reconcile.ts';
import type { ReportJson } from '../../rules/reconcile/report.ts';
import { canonicalJson, type CanonicalValue } from '../../../base/values/canonical-json.ts';
import { outcomeHash, pinExports, reportHash, rootAt } from './pins.ts';

/** How one thing that a close has pinned is now. */
export interface Comparison {
  readonly of: 'head' | 'reconciliation' | BookFormat;
  readonly result: 'same' | 'differs' | 'not_compared';
  /** What differs, or why it was not compared. */
  readonly words?: string | undefined;
}

/**
 * Compares a closed period with the ledger: the head of the log, and every export.
 * @throws ExportError if the ledger cannot be read
 */
export async function comparePeriod(source: LedgerSource, closed: ClosedPeriod): Promise<Comparison[]> {
  const { size, root } = closed.close.data.head;
  const now = await rootAt(source, closed.period, size);
  const head: Comparison =
    now === root
      ? { of: 'head', result: 'same', words: `the first ${size} events` }
      : {
          of: 'head',
          result: 'differs',
          words:
            now === undefined
              ? `the ledger has fewer than ${size} events`
              : `the first ${size} events are others`,
        };
  return [head, ...(await compareExports(source, closed))];
}

async function compareExports(source: LedgerSource, closed: ClosedPeriod): Promise<Comparison[]> {
  try {
    const { exports } = await pinExports(source, closed.period);
    return bookFormats.flatMap((format) => compareExport(closed, format, exports[format]) ?? []);
  } catch (error) {
    if (!(error instanceof BooksError)) throw error;
    // no export can be made of what is there now
    const pinned = bookFormats.filter((format) => closed.close.data.exports[format] !== undefined);
    return pinned.map((format) => ({ of: format, result: 'differs', words: error.message }));
  }
}

/** Compares one export with the close; undefined if the close has no export in that format. */
export function compareExport(
  { close }: ClosedPeriod,
  format: BookFormat,
  sha256: string | undefined,
): Comparison | undefined {
  const pinned = close.data.exports[format];
  if (pinned === undefined) return undefined;
  const { formats_edition: edition } = close.data;
  if (edition !== formatsEdition)
    return {
      of: format,
      result: 'not_compared',
      words: `the close has edition ${edition} of the formats, and this program writes edition ${formatsEdition}`,
    };
  return pinned === sha256
    ? { of: format, result: 'same' }
    : {
        of: format,
        result: 'differs',
        words: `its SHA-256 is ${sha256 ?? 'none'}, and that of the close ${pinned}`,
      };
}

/**
 * Compares a reconciliation with that of the close: byte for byte if it has read the same head of the log, else its part about the
 * period. `pinned`: the report of the close, if it is known, to name what differs.
 */
export function compareReport(
  { close }: ClosedPeriod,
  report: ReportJson,
  pinned: ReportJson | undefined,
): Comparison {
  const { head, report_sha256: whole, outcome_sha256: outcome } = close.data;
  const isUnchanged =
    report.ledger.size === head.size ? reportHash(report) === whole : outcomeHash(report) === outcome;
  if (isUnchanged) return { of: 'reconciliation', result: 'same' };
  const known = pinned && reportHash(pinned) === whole ? differences(pinned, report) : [];
  return {
    of: 'reconciliation',
    result: 'differs',
    words:
      known.length > 0
        ? known.join('; ')
        : 'the report of the close is not known, so what differs is not either',
  };
}

/** The parts of two reports that are not the same. */
function differences(then: ReportJson, now: ReportJson): string[] {
  const classes = allClasses.flatMap((name) => {
    if (isEqual(then.classes[name], now.classes[name])) return [];
    const [before, after] = [then, now].map(({ classes: all }) => all[name]?.count ?? 0);
    return before === after
      ? `class ${name}: ${after} as then, and what they are or how they are explained differs`
      : `class ${name}: ${before} then, ${after} now`;
  });
  const others = (['period', 'networks', 'accounts'] as const).filter(
    (part) => !isEqual(then[part], now[part]),
  );
  const head = then.ledger.size === now.ledger.size && !isEqual(then.ledger, now.ledger) ? ['ledger'] : [];
  return [...classes, ...head, ...others];
}

function isEqual(then: unknown, now: unknown): boolean {
  const [a, b] = [then, now].map((part) => canonicalJson((part ?? null) as CanonicalValue));
  return a === b;
}
