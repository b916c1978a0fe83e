import { reasonOf } from '../../../base/config/files.ts';
import { late, within } from '../../../base/runtime/within.ts';
import { CheckpointError, parseVerifierKey } from '../../../base/values/log/checkpoint.ts';
import { parsePeriod, type Period, type PeriodRefusalCode } from '../../../base/values/period.ts';
import { chainIdOf } from '../../../base/values/primitives.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { createScanner } from '../../../payments/peers/chain/transfer-scan.ts';
import { hasCompared, reportText } from '../../../finance/rules/reconcile/report.ts';
import { ledgerInDatabase } from '../../../finance/use-cases/reconcile/ledger-source.ts';
import { ReconcileError } from '../../../finance/use-cases/reconcile/reconcile-error.ts';
import { reconcile } from '../../../finance/use-cases/reconcile/reconcile.ts';
import { storeReconciliation } from '../../../audit/store/reconciliations.ts';
import { noticeOf } from '../../pages/document.ts';
import { buttonForm, field, form } from '../../pages/elements.ts';
import type { Answer, View } from '../../pages/visit.ts';
import { jobsOf } from '../contexts.ts';
import type { Console, OperatorVisit } from '../visit.ts';
import { lasting } from '../words.ts';
import { booksPath } from './books-view.ts';
import { beginReading } from './one-at-a-time.ts';

const path = `${booksPath}/reconcile`;

/** A node may search many blocks for one request. */
const scanTimeoutMs = 30_000;

/** A form is answered after this time: a longer reconciliation continues, and its report is listed once it is made. */
const answeredMs = 20_000;

type Made =
  | { readonly kind: 'stored'; readonly id: number }
  | { readonly kind: 'failed'; readonly why: string };

/** The reconciliation that this process makes, or made last and could not store. */
interface Run {
  readonly period: string;
  readonly operator: string;
  readonly since: Date;
  failed?: string;
}
let run: Run | undefined;

const periodMistakes: Readonly<Record<PeriodRefusalCode, string>> = {
  half_open: 'A period needs both ends.',
  not_an_instant: 'An end is a day such as 2026-11-01, or a time such as 2026-11-01T08:00:00Z.',
  not_a_period: 'This is not a period.',
  reversed: 'The period ends before it begins.',
  empty: 'The period is empty: its end is not part of it.',
  in_the_future: 'The period is in the future.',
  not_over: 'The period is not over.',
};

function subject(_: OperatorVisit, fields: URLSearchParams): string {
  return `${fields.get('from') ?? ''} to ${fields.get('to') ?? ''}`;
}

/** Compares the ledger with the chains for a period and stores the report, as the command `tollbook reconcile` does. */
export function reconcileAction(
  console: Console,
  show: (visit: OperatorVisit, mistake: string, typed: URLSearchParams) => Promise<View>,
): void {
  const options = { role: 'finance', action: 'reconcile', shownAt: booksPath, subject } as const;
  console.act(path, options, async (visit, { fields }): Promise<Answer> => {
    const refused = (why: string): Promise<View> => show(visit, `${why} No report was stored.`, fields);
    const [from, to] = [fields.get('from')?.trim(), fields.get('to')?.trim()];
    const reading = parsePeriod(from, to, Date.now());
    if (reading.kind === 'refusal') return refused(periodMistakes[reading.refusal.code]);
    const begun = beginReading();
    if (!begun) return refused('The whole ledger is being read for somebody else at present: try again.');
    const own: Run = { period: `${from} to ${to}`, operator: visit.operator.name, since: new Date() };
    run = own;
    const made = make(visit, reading.period)
      .finally(() => begun.end())
      .then((result) => {
        if (result.kind === 'failed') own.failed = result.why;
        else if (run === own) run = undefined;
        return result;
      });
    const done = await within(answeredMs, made);
    if (done === late) return { kind: 'redirect', to: booksPath };
    if (done.kind === 'failed') {
      if (run === own) run = undefined;
      return refused(done.why);
    }
    return { kind: 'redirect', to: `${booksPath}/reconciliations/${done.id}`, notice: 'reconciled' };
  });
}

async function make(visit: OperatorVisit, period: Period): Promise<Made> {
  const { site } = visit;
  const { settings } = jobsOf(visit);
  const { pool } = site.ledger;
  const chains = new Map(
    [...settings.networks].map(([network, { rpcUrl }]) => {
      const options = { network, chainId: chainIdOf(network) ?? 0, rpcUrl, timeoutMs: scanTimeoutMs };
      return [network, createScanner(options)] as const;
    }),
  );
  try {
    const keys = (await site.logKeys()).map(parseVerifierKey);
    const [first] = keys;
    const verifier = first && { name: first.name, keys: keys.flatMap((key) => key.keys) };
    const report = await reconcile({
      period,
      source: await ledgerInDatabase(pool, verifier, undefined),
      chains,
      accepted: settings.acceptedTokens,
      pinned: new Map(),
      twice: false,
      resumeFile: undefined,
      onProgress: () => {},
    });
    if (!hasCompared(report))
      return {
        kind: 'failed',
        why: 'No chain has a block in this period, and the ledger has nothing there.',
      };
    return { kind: 'stored', id: await storeReconciliation(pool, reportText(report)) };
  } catch (error) {
    if (error instanceof ReconcileError || error instanceof CheckpointError)
      return { kind: 'failed', why: `${error.message}.` };
    site.logger.warn({ err: error }, 'a reconciliation of the console failed');
    return { kind: 'failed', why: `${reasonOf(error)}.` };
  } finally {
    await Promise.all([...chains.values()].map((chain) => chain.close()));
  }
}

/** What became of the reconciliation that was asked for last, while its report is not listed. */
export function runNotice(): Html | undefined {
  if (!run) return undefined;
  const { period, operator, since, failed } = run;
  if (failed !== undefined)
    return noticeOf({ tone: 'bad', text: `The reconciliation of ${period} was not made: ${failed}` });
  return html`<p class="notice" role="status">
    The reconciliation of ${period} is being made for ${operator}, for ${lasting(since)}. Its report is listed
    here when it is ready.
  </p>`;
}

/** Proposes the time since the last reconciliation, up to the beginning of today. */
export function reconcileForm(
  visit: OperatorVisit,
  lastTo: string | undefined,
  typed: URLSearchParams | undefined,
): Html {
  const today = new Date().toISOString().slice(0, 10);
  const month = new Date(Date.parse(today) - 86_400_000).toISOString().slice(0, 7);
  const isNew = lastTo !== undefined && Date.parse(lastTo) < Date.parse(today);
  const since = isNew ? lastTo.replace(/T00:00:00\.000Z$/, '') : `${month}-01`;
  const ofPeriod = (label: string, name: string, value: string, hint: string): Html =>
    field({ label, name, value: typed?.get(name) ?? value, maxLength: 30, autocomplete: 'off', hint });
  return form(
    visit,
    path,
    html`<div class="grid">
        ${ofPeriod('From', 'from', since, 'A day of UTC, or a time.')}
        ${ofPeriod('Up to', 'to', today, 'Not part of the period, which must be over.')}
      </div>
      <button>Compare the ledger with the chains</button>`,
  );
}

/** The same period once more, after what was wrong in it was recorded. */
export function reconcileAgain(
  visit: OperatorVisit,
  period: { readonly from: string; readonly to: string },
): Html {
  const { from, to } = period;
  return buttonForm(visit, path, 'Reconcile this period again', { look: 'plain', values: { from, to } });
}
