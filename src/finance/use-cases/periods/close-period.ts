import { openDatabaseSource } from '../books/source.ts';
import { formatsEdition } from '../../../base/values/format.ts';
import type { EventData, LedgerEvent } from '../../../ledger/rules/event.ts';
import { readCheckpoint } from '../../../base/values/log/checkpoint.ts';
import { periodStream, type PeriodRefusal, type PeriodRefusalCode } from '../../rules/periods/periods.ts';
import { leavesUnexplained, type ReportJson } from '../../rules/reconcile/report.ts';
import { instantText, type Period, periodName } from '../../../base/values/period.ts';
import { utc } from '../../../base/values/time-zone.ts';
import { countReopened } from '../reconcile/explain-break.ts';
import type { Lane } from '../../../ledger/store/lane.ts';
import { outcomeHash, pinExports, reportHash, rootAt } from './pins.ts';
import { readPeriods } from './read-periods.ts';
import type { LedgerWriter } from '../../../ledger/store/ledger.ts';

export interface CloseOrder {
  readonly period: Period;
  /** The reconciliation of exactly this period. */
  readonly report: ReportJson;
  readonly operator: string;
  /** Why it is closed although breaks are not explained. */
  readonly despite: string | undefined;
}

export type CloseRefusalCode =
  | PeriodRefusalCode
  | 'other_period'
  | 'not_sealed'
  | 'ledger_wrong'
  | 'not_final'
  | 'open_breaks'
  | 'report_too_old'
  | 'other_ledger'
  | 'superseded';

export interface Refused<Code extends string> {
  readonly kind: 'refused';
  readonly code: Code;
  /** A sentence without its full stop. */
  readonly message: string;
}

export interface Closed {
  readonly kind: 'closed';
  readonly data: EventData<'operator_period_closed'>;
}

/**
 * Closes a period: records the hashes of its reconciliation and of its exports, and the head of the log that the reconciliation read.
 * Changes nothing if it is refused.
 */
export async function closePeriod(
  { pool, lane }: LedgerWriter,
  { period, report, operator, despite }: CloseOrder,
): Promise<Closed | Refused<CloseRefusalCode>> {
  const { periods, version } = await readPeriods(pool);
  const wrong = periods.refuseClose(period) ?? refuseReport(period, report, despite);
  if (wrong) return refusedBy(wrong);
  const reopened = await countReopened(pool, report);
  if (reopened > 0)
    return refused(
      'open_breaks',
      `the report calls ${reopened === 1 ? 'a break' : `${reopened} breaks`} explained, and the ledger does not, or not any more: reconcile again`,
    );
  const source = await openDatabaseSource(pool);
  const { size, root } = report.ledger;
  const { events, exports } = await pinExports(source, period);
  if (events > size)
    return refused(
      'report_too_old',
      `the reconciliation read ${size} events, and the period has events up to ${events}: reconcile again`,
    );
  if ((await rootAt(source, period, size)) !== root)
    return refused(
      'other_ledger',
      `the first ${size} events of this ledger are not those that the reconciliation read: run tollbook verify`,
    );
  const data = {
    from_ms: period.fromMs,
    to_ms: period.toMs,
    time_zone: (period.zone ?? utc).name,
    head: { origin: readCheckpoint(report.ledger.checkpoint ?? '').origin, size, root },
    report_sha256: reportHash(report),
    outcome_sha256: outcomeHash(report),
    breaks: report.breaks,
    breaks_explained: report.breaks_explained,
    open_items: report.open_items,
    exports,
    formats_edition: formatsEdition,
    ...(despite !== undefined && { despite }),
    operator,
  };
  return recordInPeriods(lane, version, { type: 'operator_period_closed', data }, { kind: 'closed', data });
}

/** What a report lacks to close a period with. */
function refuseReport(
  period: Period,
  { period: of, ledger, networks, accounts, breaks, breaks_explained: explained }: ReportJson,
  despite: string | undefined,
): { readonly code: CloseRefusalCode; readonly message: string } | undefined {
  if (of.from !== instantText(period.fromMs) || of.to !== instantText(period.toMs))
    return { code: 'other_period', message: `the report is of ${of.from} up to ${of.to}` };
  if (ledger.fault)
    return {
      code: 'ledger_wrong',
      message: `the ledger is wrong at event ${ledger.fault.seq}: ${ledger.fault.words}`,
    };
  if (ledger.checkpoint === null)
    return {
      code: 'not_sealed',
      message: 'the report names no checkpoint: reconcile with --pubkey or --config',
    };
  const early = networks.find(({ is_covered: isCovered }) => !isCovered);
  if (early)
    return {
      code: 'not_final',
      message: `${early.network} had no final block after ${periodName(period)}: wait, and reconcile again`,
    };
  if (leavesUnexplained({ accounts }) && despite === undefined)
    return {
      code: 'open_breaks',
      message:
        'the books and the chain differ by an amount that no item of the report explains (NOT EXPLAINED): find out why, or say it with --despite',
    };
  const open = breaks - explained;
  if (open > 0 && despite === undefined)
    return {
      code: 'open_breaks',
      message: `${open} ${open === 1 ? 'break is' : 'breaks are'} not explained: explain ${open === 1 ? 'it' : 'them'} with reconcile explain and reconcile again, or say why with --despite`,
    };
  return undefined;
}

function refused<Code extends string>(code: Code, message: string): Refused<Code> {
  return { kind: 'refused', code, message };
}

export function refusedBy<Code extends string>({
  code,
  message,
}: Pick<PeriodRefusal, 'message'> & { readonly code: Code }): Refused<Code> {
  return refused(code, message);
}

/** Records a fact of the periods; refused if they changed since `version`. */
export async function recordInPeriods<Recorded>(
  lane: Lane,
  version: number,
  event: LedgerEvent,
  recorded: Recorded,
): Promise<Recorded | Refused<'superseded'>> {
  const { outcome } = await lane.append({ stream: periodStream, expect: version, events: [event] });
  if (outcome === 'ok') return recorded;
  return refused(
    'superseded',
    'somebody else recorded something of the periods at the same moment: try again',
  );
}
