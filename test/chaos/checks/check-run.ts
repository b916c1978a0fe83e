import type { RecordedEvent } from '../../../src/ledger/rules/event.ts';
import type { Address } from '../../../src/base/values/primitives.ts';
import { countByType, countersFrom } from '../../../src/ledger/rules/counters.ts';
import { checkedFaults, ledgerFaults } from '../../support/ledger-faults.ts';
import { isPermit } from '../../support/permit2.ts';
import { isUpto } from '../../support/upto.ts';
import type { Records } from '../records.ts';
import type { Loss } from '../turnovers.ts';
import type { Participants } from '../participants.ts';
import type { SentRefund } from '../refund-operator.ts';
import type { PaymentNetwork } from '../environment.ts';
import { withLedger, withOwner } from '../sql.ts';
import { listAccounts } from '../../../src/accounts/store/credit.ts';
import { balanceOf } from '../../../src/devnet/token.ts';
import { attemptViolations } from './attempts.ts';
import { type AccountState, creditViolations } from './credit.ts';
import { countEarned, readChainSpends, spendViolations } from './spends.ts';
import { answerViolations, countExcused } from './answers.ts';
import { endViolations } from './ends.ts';
import { bindingViolations } from './bindings.ts';
import { floodViolations, growthViolations, salesViolations, type SiegeLimits } from './sales.ts';
import { moneyViolations } from './money.ts';
import { recordedPayments, recoveredPayments } from './payments.ts';
import { offeredAgain, withoutLost } from './lost.ts';
import { meteredViolations, paidTooMuch } from './metered.ts';
import { lostAnswers, routeRuns, routeViolations } from './routes.ts';
import { refundViolations } from './refunds.ts';
import { isPayment, type Landed, readTransfers } from './transfers.ts';
import type { Violation } from './violation.ts';
import { idempotencyViolations, workViolations } from './work.ts';

export interface CheckParts {
  readonly network: Pick<PaymentNetwork, 'chain' | 'tokens'>;
  /** Of the ledger's database, by its owner. */
  readonly url: string;
  readonly participants: Pick<Participants, 'gateways' | 'runners'>;
  readonly records: Records;
  readonly payTo: Address;
  /** Where payouts of spends go. Left out, gateways serve no chat. */
  readonly recipient?: Address;
  readonly fromBlock: bigint;
  /** Work that was still open after the time-out. */
  readonly left: readonly string[];
  /** Whether a gateway takes the facilitator's word while the chain cannot be reached. */
  readonly believesLies?: boolean;
  /** What a failover or a restore lost, and what broke until the ledger was recovered. */
  readonly loss?: Loss | undefined;
  readonly found?: readonly Violation[];
  /** The refunds that an operator sent. */
  readonly sentRefunds?: readonly SentRefund[];
  /** When the faults ended; left out, they have not. */
  readonly quietSince?: number;
  /** In a siege. */
  readonly siegeLimits?: SiegeLimits | undefined;
  /** Whether the ledger's clock was moved. */
  readonly isClockMoved?: boolean;
  /** Scenarios whose payment must succeed at once. */
  readonly mustSell: readonly string[];
}

export interface Checked {
  readonly violations: readonly Violation[];
  readonly landed: number;
  /** Of them, those by upto, and those by a permit of another scheme. */
  readonly landedBy: { readonly upto: number; readonly permits: number };
  /** Refusals of payments that another request of the same client started later. */
  readonly excused: number;
  /** Spends that paid for an answer. */
  readonly spends: number;
  /** The ledger as text, to examine a violation. */
  readonly ledger: string;
}

/** Compares the chain, the ledger, the answers to clients and the work of runners. */
export async function checkRun(parts: CheckParts): Promise<Checked> {
  const { network, participants, records, siegeLimits } = parts;
  // a gateway that does not start is among what is left
  const stats = parts.left.length > 0 ? [] : await askForStats(participants);
  // gateways stop first, so that the ledger does not change during the comparison
  await Promise.all(participants.gateways.map((gateway) => gateway.stop()));
  const { events, faults, accounts, lost } = await readLedger(parts.url);
  const illegal = await withOwner(parts.url, checkedFaults);
  const { chain: node, tokens } = network;
  const moved = await readTransfers(node.url, tokens, parts.payTo, parts.fromBlock);
  const payments = recordedPayments(events);
  const [token] = tokens;
  const received = parts.recipient ? await balanceOf(node.url, token, parts.recipient) : 0n;
  const chain = await readChainSpends(node.url, parts.fromBlock, received);
  const recovered = recoveredPayments(events);
  const transfers = moved.filter((one) => isPayment(one, records));
  const known = {
    records,
    runs: [...participants.runners.flatMap((runner) => runner.runs), ...routeRuns(records, payments, events)],
  };
  const offered = parts.loss ? [...offeredAgain(records, parts.loss, recovered)] : [];
  const seen = parts.loss ? withoutLost(known, parts.loss, payments, recovered) : known;
  const { runs } = seen;
  const { believesLies = true, isClockMoved = false, quietSince = Infinity } = parts;
  const tooMuch = paidTooMuch({ records, transfers, payments, events });
  const facts = { records: seen.records, transfers, payments, events, quietSince, tooMuch };
  const deaths = participants.gateways.flatMap((gateway) => gateway.faults);
  const violations = [
    ...(parts.found ?? []),
    ...offered,
    ...moneyViolations(transfers, payments, records, { recovered: recovered.union(tooMuch), believesLies }),
    ...meteredViolations({ records, transfers, payments, events }),
    ...answerViolations(facts),
    ...routeViolations({ ...facts, believesLies, isClockMoved }),
    ...lost,
    ...refundViolations(facts, parts.sentRefunds ?? []),
    ...creditViolations({ ...facts, accounts }),
    ...spendViolations({ records, events, chain }),
    ...bindingViolations(events, records),
    ...(isClockMoved ? [] : endViolations(events)),
    ...salesViolations(records, parts.mustSell),
    ...records.awaitedBodies.map(violation('body_awaited')),
    ...(siegeLimits ? growthViolations(events, payments, siegeLimits.otherEvents) : []),
    ...(siegeLimits ? floodViolations(records, siegeLimits.floodOffers) : []),
    ...workViolations(payments, events, runs),
    ...idempotencyViolations(known.runs),
    ...attemptViolations(events),
    ...illegal.map(violation('illegal_transition')),
    ...[...faults, ...statsFaults(stats, events)].map(violation('ledger_unsound')),
    ...parts.left.map(violation('settlement_left_open')),
    ...deaths.map(violation('gateway_died')),
  ];
  return {
    violations,
    landed: transfers.length,
    landedBy: countSchemes(transfers, records),
    excused: countExcused(facts),
    spends: countEarned(events),
    ledger: events.map((event) => JSON.stringify(event)).join('\n'),
  };
}

function countSchemes(transfers: readonly Landed[], { signed }: Records): Checked['landedBy'] {
  const paid = transfers.flatMap(({ key }) => signed.get(key)?.payment ?? []);
  const upto = paid.filter(isUpto).length;
  return { upto, permits: paid.filter(isPermit).length - upto };
}

function violation(kind: Violation['kind']): (words: string) => Violation {
  return (words) => ({ kind, words });
}

function readLedger(
  url: string,
): Promise<{ events: RecordedEvent[]; faults: string[]; accounts: AccountState[]; lost: Violation[] }> {
  return withLedger(url, async ({ db }) => {
    const read = await ledgerFaults(db);
    const lost = await Array.fromAsync(lostAnswers(db, read.events));
    return { ...read, lost, accounts: await listAccounts(db) };
  });
}

interface Stats {
  readonly gateway: string;
  readonly as_of_seq: number;
  readonly counters: object;
}

async function askForStats({ gateways }: Pick<Participants, 'gateways'>): Promise<Stats[]> {
  return Promise.all(
    gateways.map(async ({ url, name, untilUp }) => {
      await untilUp();
      const stats = (await (await fetch(`${url}/x402/stats`)).json()) as Omit<Stats, 'gateway'>;
      return { ...stats, gateway: name };
    }),
  );
}

/** The public counters of every gateway must equal the fold of the events. */
function* statsFaults(stats: readonly Stats[], events: readonly RecordedEvent[]): Generator<string> {
  for (const { gateway, as_of_seq: head, counters } of stats) {
    const countOf = countByType(events.filter(({ seq }) => seq <= head));
    const expected = JSON.stringify(sorted(countersFrom(countOf)));
    const found = JSON.stringify(sorted(counters));
    if (found !== expected) yield `gateway ${gateway} reports ${found}, the events give ${expected}`;
  }
}

function sorted(counters: object): [string, unknown][] {
  return Object.entries(counters).toSorted(([a], [b]) => (a < b ? -1 : 1));
}
