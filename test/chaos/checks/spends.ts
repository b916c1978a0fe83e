import { createPublicClient, http, parseAbi } from 'viem';
import { prepaidContractAddress } from '../../../src/devnet/prepaid-contract.ts';
import type { RecordedEvent } from '../../../src/ledger/rules/event.ts';
import type { Records, SignedSpend } from '../records.ts';
import { mostCharges } from './credit.ts';
import type { Violation } from './violation.ts';

/** What the prepaid contract did, by the hash of the spend. */
export interface ChainSpends {
  /** Transactions that debited its account. */
  readonly landed: ReadonlySet<string>;
  /** Atoms that its operator got, for each payout. */
  readonly claimed: ReadonlyMap<string, readonly bigint[]>;
  /** Atoms that the operator's recipient of this run has. */
  readonly received: bigint;
}

const [spent, claimed] = parseAbi([
  'event CreditsSpent(bytes32 indexed commitment, bytes32 indexed authHash, uint256 amount, uint256 remaining)',
  'event PaymentClaimed(bytes32 indexed authHash, address indexed operator, uint256 amount)',
]);

/** From the chain's own logs, since a block. */
export async function readChainSpends(
  rpcUrl: string,
  fromBlock: bigint,
  received: bigint,
): Promise<ChainSpends> {
  const client = createPublicClient({ transport: http(rpcUrl) });
  const range = { address: prepaidContractAddress, fromBlock, strict: true as const };
  const spends = await client.getLogs({ ...range, event: spent });
  const claims = await client.getLogs({ ...range, event: claimed });
  const amounts = Map.groupBy(claims, ({ args }) => args.authHash);
  return {
    landed: new Set(spends.map(({ args }) => args.authHash)),
    claimed: new Map([...amounts].map(([hash, logs]) => [hash, logs.map(({ args }) => args.amount)])),
    received,
  };
}

interface Facts {
  readonly records: Pick<Records, 'completions' | 'spends' | 'upstream'>;
  readonly events: readonly RecordedEvent[];
  readonly chain: ChainSpends;
}

type SpendEvent = Extract<RecordedEvent, { data: { auth_hash: string } }>;

/** Each spend pays for one answer at most, is paid out exactly if it paid for one, and no other money is taken. */
export function* spendViolations({ records, events, chain }: Facts): Generator<Violation> {
  const ofSpends = events.filter((event): event is SpendEvent => 'auth_hash' in event.data);
  const byHash = Map.groupBy(ofSpends, ({ data }) => data.auth_hash);
  for (const spend of records.spends) {
    const own = byHash.get(spend.authHash) ?? [];
    yield* answerFaults(spend, own, records, chain);
    yield* payoutFaults(spend, own, chain);
  }
  const known = new Set<string>(records.spends.map(({ authHash }) => authHash));
  for (const hash of byHash.keys())
    if (!known.has(hash)) yield { kind: 'payout_wrong', words: `${hash}: an unknown spend was accepted` };
  const recorded = sum(ofSpends.filter(({ type }) => type === 'spend_paid_out'));
  if (recorded !== chain.received)
    yield { kind: 'payout_wrong', words: `${recorded} were recorded as paid out, ${chain.received} arrived` };
}

export function countEarned(events: readonly RecordedEvent[]): number {
  return events.filter(({ type }) => type === 'spend_earned').length;
}

function sum(events: readonly SpendEvent[]): bigint {
  return events.reduce((total, { data }) => total + BigInt(data.amount), 0n);
}

function* answerFaults(
  { authHash, isFrontRun }: SignedSpend,
  own: readonly SpendEvent[],
  records: Facts['records'],
  chain: ChainSpends,
): Generator<Violation> {
  const requests = records.completions.filter(
    ({ means }) => means.kind === 'spend' && means.spend.authHash === authHash,
  );
  const words = `${requests[0]?.scenario ?? 'a scenario'}: spend ${authHash}`;
  const earned = own.filter(({ type }) => type === 'spend_earned');
  const answers = requests.flatMap(({ attempts }) => attempts.filter(({ status }) => status === 200));
  if (earned.length > 1 || answers.length > 1)
    yield {
      kind: 'spend_used_twice',
      words: `${words} bought ${answers.length} answers, ${earned.length} recorded`,
    };
  for (const { chatId } of answers)
    if (!earned.some(({ data }) => data.chat_id === chatId))
      yield { kind: 'answer_not_charged', words: `${words}: completion ${chatId}` };
  const most = requests.reduce((total, one) => total + mostCharges(one, records), 0);
  if (earned.length > most)
    yield { kind: 'charged_though_refused', words: `${words} is earned, and no request of it got an answer` };
  if (!chain.landed.has(authHash) || earned.length > 0) return;
  // one that a third party landed while no request had it belongs to none, and its account gets it back: also if the append of a
  // killed gateway arrives after the refusal
  const refusedAt = Math.min(...requests.map(({ attempts }) => attempts.at(-1)?.sentAt ?? Infinity));
  if (isFrontRun && !isBound(own, refusedAt)) return;
  const refused = requests.every(({ end }) => end === 'refused');
  if (refused)
    yield { kind: 'refused_though_paid', words: `${words} has landed, and its requests were refused` };
  // it may belong to the request of a client that left, and waits for that one
  else if (requests.every(({ end }) => end === 'refused' || end === 'unanswered'))
    yield { kind: 'never_answered', words: `${words} has landed` };
}

/** Whether a request had the spend at this time: accepted, and not released before it may have been public. */
function isBound(own: readonly SpendEvent[], atMs: number): boolean {
  const freed = new Set(
    own.flatMap((one) =>
      one.type === 'spend_released' && !one.data.may_have_landed ? one.data.chat_id : [],
    ),
  );
  return own.some(
    ({ type, data, at }) => type === 'spend_accepted' && Date.parse(at) < atMs && !freed.has(data.chat_id),
  );
}

function* payoutFaults(
  { authHash, auth }: SignedSpend,
  own: readonly SpendEvent[],
  chain: ChainSpends,
): Generator<Violation> {
  const words = `spend ${authHash}`;
  const isEarned = own.some(({ type }) => type === 'spend_earned');
  const paidOut = own.filter(({ type }) => type === 'spend_paid_out');
  const failed = own.find((event) => event.type === 'spend_failed');
  const claims = chain.claimed.get(authHash) ?? [];
  if (failed) yield { kind: 'payout_wrong', words: `${words} was given up: ${failed.data.reason}` };
  if (isEarned && !chain.landed.has(authHash))
    yield { kind: 'payout_wrong', words: `${words} was answered, and has not landed` };
  const expected = isEarned ? 1 : 0;
  if (claims.length !== expected || paidOut.length !== expected) {
    const found = `${claims.length} payouts on the chain, ${paidOut.length} in the ledger`;
    yield { kind: 'payout_wrong', words: `${words}, ${isEarned ? '' : 'not '}earned: ${found}` };
  }
  if ([...claims, ...paidOut.map(({ data }) => BigInt(data.amount))].some((amount) => amount !== auth.amount))
    yield { kind: 'payout_wrong', words: `${words} of ${auth.amount} was paid out as ${claims.join(', ')}` };
}
