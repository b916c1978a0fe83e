import { groupDeadLetters } from '../../../calls/use-cases/dead-letters.ts';
import { pathWith } from '../../pages/own-path.ts';
import { type FiringAlert, listFiringAlerts } from '../../../ledger/store/alerts.ts';
import { countedUnknown, readUnknownSettlements } from '../../../ledger/store/earnings-and-latency.ts';
import { findLastReconciliation } from '../../../audit/store/reconciliations.ts';
import { countedOwed, readRefundsOwed } from '../../../payments/store/refunds.ts';
import { dayText } from '../../pages/elements.ts';
import { formatUnits } from 'viem/utils';
import {
  type AskedRefund,
  type ListedRequest,
  listRequests,
} from '../../../finance/use-cases/refunds/list-requests.ts';
import { countOpenBreaks } from '../books/stored-report.ts';
import type { ConsoleSite } from '../visit.ts';

/** Something that does not end without a person. */
export interface Need {
  /** In a few words. */
  readonly title: string;
  readonly text: string;
  readonly since: Date | undefined;
  /** The page that deals with it; undefined if the console has no such page. */
  readonly path: string | undefined;
}

/** This many dead letters are grouped by cause. */
const groupedDeadLetters = 2_000;
const shownCauses = 5;
const shownRequests = 5;
/** Characters of what a payer wrote: its page has all of it. */
const shownWords = 160;

/** The conditions that need a person now: money first, then those that stop payments, then the rest. */
export async function readNeeds(site: ConsoleSite): Promise<readonly Need[]> {
  const [unknown, asked, owed, dead, breaks, alerts] = await Promise.all([
    unknownSettlements(site),
    refundRequests(site),
    refundsOwed(site),
    deadLetters(site),
    breaksOfLastRun(site),
    listFiringAlerts(site.ledger.db),
  ]);
  // dead letters are listed by cause
  const others = alerts.filter(({ kind }) => kind !== 'dead_letters');
  return [...unknown, ...asked, ...owed, ...breaks, ...dead, ...others.map((alert) => needOf(site, alert))];
}

async function unknownSettlements({ jobs, ledger }: ConsoleSite): Promise<readonly Need[]> {
  if (!jobs) return [];
  const { count, oldestMs } = await readUnknownSettlements(ledger.pool);
  if (count === 0) return [];
  const many = count >= countedUnknown ? `${countedUnknown} or more` : String(count);
  return [
    {
      title: count === 1 ? 'unknown settlement' : 'unknown settlements',
      text: `${many} without a known outcome. The gateway asks the chain again and again; resolve what it cannot find out.`,
      since: new Date(Date.now() - oldestMs),
      path: '/console/payments?state=settlement_unknown',
    },
  ];
}

/** Each with what its payer wrote; those beyond the oldest ones are counted. */
async function refundRequests({ jobs, ledger }: ConsoleSite): Promise<readonly Need[]> {
  if (!jobs) return [];
  const requests = await listRequests(ledger, shownRequests + 1);
  const shown = requests.slice(0, shownRequests).map(({ quote_digest: digest, asked, ...money }) => ({
    title: 'refund request',
    text: `${amountText(money)}, ${asked.state === 'open' ? 'to be decided' : 'due'}: ${wordsOf(asked)}`,
    since: new Date(asked.at),
    path: `/console/payments/${digest}`,
  }));
  if (requests.length <= shownRequests) return shown;
  const text = 'More payers ask for refunds: these are the oldest requests.';
  return [...shown, { title: 'refund requests', text, since: undefined, path: undefined }];
}

function amountText({ amount, decimals, symbol }: Omit<ListedRequest, 'quote_digest' | 'asked'>): string {
  return `${formatUnits(BigInt(amount), decimals)} ${symbol}`;
}

function wordsOf({ reason }: AskedRefund): string {
  if (reason === undefined) return 'its reason is deleted';
  return `“${reason.length > shownWords ? `${reason.slice(0, shownWords)}…` : reason}”`;
}

/** Of calls that were given up, and of payments without a call: those of dead letters are decided on there. */
async function refundsOwed({ jobs, ledger }: ConsoleSite): Promise<readonly Need[]> {
  if (!jobs) return [];
  const { count, oldestMs } = await readRefundsOwed(ledger.pool);
  if (count === 0) return [];
  const many = count >= countedOwed ? `${countedOwed} or more payments are` : `${count} payments are`;
  const text = `${count === 1 ? '1 payment is' : many} owed back: paid, and not delivered.`;
  return [
    {
      title: count === 1 ? 'refund due' : 'refunds due',
      text,
      since: new Date(Date.now() - oldestMs),
      path: '/console/books/refunds',
    },
  ];
}

async function deadLetters({ jobs, ledger }: ConsoleSite): Promise<readonly Need[]> {
  if (!jobs) return [];
  const { groups, next } = await groupDeadLetters(ledger.db, { isRefunded: false }, 0, groupedDeadLetters);
  const shown = groups.slice(0, shownCauses).map(({ cause, reason, words, calls, oldest }) => ({
    title: calls === 1 ? 'dead letter' : 'dead letters',
    text: `${notDelivered(calls, next !== undefined)}: ${words === '' ? (reason ?? 'unknown').replaceAll('_', ' ') : words}`,
    since: oldest,
    path: pathWith('/console/calls/dead', { cause }),
  }));
  const rest = groups.slice(shownCauses);
  if (rest.length === 0) return shown;
  const calls = rest.reduce((sum, group) => sum + group.calls, 0);
  const text = `${calls} of ${rest.length} other causes`;
  return [...shown, { title: 'dead letters', text, since: undefined, path: '/console/calls' }];
}

function notDelivered(calls: number, hasMore: boolean): string {
  if (hasMore) return `${calls} calls or more were not delivered, for one cause`;
  return calls === 1 ? '1 call was not delivered' : `${calls} calls were not delivered, for one cause`;
}

async function breaksOfLastRun(site: ConsoleSite): Promise<readonly Need[]> {
  const last = await findLastReconciliation(site.ledger.pool);
  const open = last && last.breaks > 0 ? await countOpenBreaks(site.ledger.pool, last.id) : 0;
  if (!last || open === 0) return [];
  const period = `${dayText(last.from)} to ${dayText(last.to)}`;
  return [
    {
      title: open === 1 ? 'break' : 'breaks',
      text: `${open} in the last reconciliation, of ${period}: the ledger and the chain differ, and no operator has explained it.`,
      since: new Date(last.at),
      path: `/console/books/reconciliations/${last.id}`,
    },
  ];
}

/** By the kind of an alert, the page that deals with it. */
const pages: Readonly<Record<string, string>> = {
  runner_paused: '/console/calls',
  broker_trouble: '/console/calls',
  calls_waiting: '/console/calls',
  deliveries_failing: '/console/calls',
  outbox_full: '/console/calls',
  facilitator_trouble: '/console/jobs',
  upstream_trouble: '/console/jobs',
  no_current_rate: '/console/jobs',
  rate_old: '/console/jobs',
  listing_gone: '/console/jobs',
  listing_missing: '/console/jobs',
  discovery_unknown: '/console/jobs',
  anchors_behind: '/console/books',
  factor_guessed: '/console/activity',
};

function needOf(site: ConsoleSite, { kind, subject, text, since }: FiringAlert): Need {
  const known = kind === 'low_gas' ? pageOfKey(subject) : pages[kind];
  return { title: kind.replaceAll('_', ' '), text, since, path: offered(site, known) };
}

/** Ether is needed by the keys of anchors, and by the operator's key of spends. */
function pageOfKey(subject: string): string {
  return subject.startsWith('anchor ') ? '/console/books' : '/console/chat';
}

function offered({ sections }: ConsoleSite, path: string | undefined): string | undefined {
  return sections.find((section) => section.path === path)?.path;
}
