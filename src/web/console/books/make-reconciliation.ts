import { reasonOf } from '../../../base/config/files.ts';
import { readConsoleEvents, recordAction } from '../../../accounts/use-cases/operators.ts';
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
import { buttonForm, field, form, time } from '../../pages/elements.ts';
import type { Answer, View } from '../../pages/visit.ts';
import { jobsOf } from '../contexts.ts';
import type { Console, ConsoleSite, OperatorVisit } from '../visit.ts';
import { lasting } from '../words.ts';
import { booksPath } from './books-view.ts';

const path = `${booksPath}/reconcile`;

/** A node may search many blocks for one request. */
const scanTimeoutMs = 30_000;

/** A form is answered after this time: a longer reconciliation continues, and its report is listed once it is made. */
const answeredMs = 20_000;

type Made =
  | { readonly kind: 'stored'; readonly id: number }
  | { readonly kind: 'failed'; readonly why: string };

/** The reconciliation that this process makes now. */
interface Run {
  readonly period: string;
  readonly operator: string;
  readonly since: Date;
}
let run: Run | undefined;

/**
 * Actions of an operator, as events: the start is followed by one of the ends, so that other processes know what became of a
 * reconciliation, and this one after it was started again.
 */
const started = 'reconcile';
const ends = {
  stored: 'reconcile_stored',
  failed: 'reconcile_failed',
  refused: 'reconcile_refused',
} as const;
/** Of what an event says that an action is about, in characters. */
const longestSubject = 200;
/** The newest actions of all operators, among which a start is searched for. */
const mostSearched = 50;

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
  const options = { role: 'finance', action: started, shownAt: booksPath, subject } as const;
  console.act(path, options, async (visit, { fields }): Promise<Answer> => {
    const { site, operator } = visit;
    const end = (kind: keyof typeof ends, words = ''): Promise<void> =>
      recordAction(site.ledger, operator, ends[kind], plainText(`${subject(visit, fields)}${words}`));
    const shown = (why: string): Promise<View> => show(visit, `${why} No report was stored.`, fields);
    const refused = async (why: string): Promise<View> => {
      await end('refused');
      return shown(why);
    };
    const [from, to] = [fields.get('from')?.trim(), fields.get('to')?.trim()];
    const reading = parsePeriod(from, to, Date.now());
    if (reading.kind === 'refusal') return refused(periodMistakes[reading.refusal.code]);
    if (run) return refused('Another reconciliation is being made: try again once it has ended.');
    run = { period: `${from} to ${to}`, operator: operator.name, since: new Date() };
    const made = make(visit, reading.period)
      .then(async (result) => {
        // a stored report is there, whether or not this can be recorded
        await end(...endOf(result)).catch((err: unknown) =>
          site.logger.warn({ err }, 'the end of a reconciliation of the console could not be recorded'),
        );
        return result;
      })
      .finally(() => {
        run = undefined;
      });
    const done = await within(answeredMs, made);
    if (done === late) return { kind: 'redirect', to: booksPath };
    if (done.kind === 'failed') return shown(done.why);
    return { kind: 'redirect', to: `${booksPath}/reconciliations/${done.id}`, notice: 'reconciled' };
  });
}

function endOf(made: Made): readonly [kind: Made['kind'], words: string] {
  return made.kind === 'stored' ? ['stored', `: report ${made.id}`] : ['failed', `: ${made.why}`];
}

/** As much of a text as an event takes. */
function plainText(text: string): string {
  const plain = text
    .replaceAll(/[^ -~]/g, '?')
    .replaceAll('@', '(at)')
    .trim();
  return plain.slice(0, longestSubject);
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

/** What became of the reconciliation that was asked for last, while no newer report than `last` is stored. */
export async function runNotice(
  { ledger }: Pick<ConsoleSite, 'ledger'>,
  last: { readonly at: string } | undefined,
): Promise<Html | undefined> {
  if (run)
    return html`<p class="notice" role="status">
      The reconciliation of ${run.period} is being made for ${run.operator}, for ${lasting(run.since)}. Its
      report is listed here when it is ready.
    </p>`;
  const events = await readConsoleEvents(ledger, undefined, mostSearched);
  const known = events
    .filter((event) => event.type === 'operator_acted')
    .find(({ data: { action } }) => action === started || Object.values(ends).some((one) => one === action));
  if (!known || (last && Date.parse(last.at) > Date.parse(known.at))) return undefined;
  const { action, operator, subject: period = 'a period' } = known.data;
  const asked = html`${operator}, ${time(new Date(known.at))}`;
  if (action === ends.failed)
    return html`<p class="notice bad" role="alert">Reconciliation not made (${asked}): ${period}</p>`;
  if (action !== started) return undefined;
  return html`<p class="notice warn" role="alert">
    What became of the reconciliation of ${period} (${asked}) is not recorded: another process of the gateway
    is still making it, or the process that made it was stopped. If its report is not listed here soon, ask
    for it again.
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
        ${ofPeriod('From', 'from', since, 'A day such as 2026-11-01, or a time such as 2026-11-01T08:00:00Z.')}
        ${ofPeriod('Up to', 'to', today, 'The period ends before this day or time, and must be over.')}
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
