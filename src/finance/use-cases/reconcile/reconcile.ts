import { instantText, type Period } from '../../../base/values/period.ts';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import { classify, type Classified, strangerOf } from '../../rules/reconcile/classify.ts';
import { type Bridge, BridgeBuilder } from '../../rules/reconcile/bridge.ts';
import type { PaymentFact } from '../../rules/reconcile/fact.ts';
import { LedgerFacts } from '../../rules/reconcile/ledger-facts.ts';
import { Matcher } from '../../rules/reconcile/match.ts';
import { PlainPayments, tallyPlain } from '../../rules/reconcile/plain-payments.ts';
import { TransferFilter } from '../../rules/reconcile/transfer-filter.ts';
import { openTransactions, type OpenTransaction } from '../../rules/reconcile/open-transactions.ts';
import {
  type AccountBooks,
  type Completeness,
  type NetworkBooks,
  type ReportJson,
  reportJson,
} from '../../rules/reconcile/report.ts';
import { mostListed, Tally } from '../../rules/reconcile/tally.ts';
import {
  type Account,
  accountKey,
  type TokenTerms,
  transactionKey,
} from '../../rules/reconcile/reconcile.ts';
import { type ChainTransfer, type Evidence } from '../../../payments/rules/chain-transfer.ts';
import type { ChainScanner } from '../../../payments/peers/chain/transfer-scan.ts';
import { NetSums, readBalances } from './balances.ts';
import { blockAt, pinBlocks, type PinnedBlocks } from './blocks.ts';
import { answered, ReconcileError } from './reconcile-error.ts';
import type { LedgerReading, LedgerSource } from './ledger-reading.ts';
import { scanTransfers } from './scan-transfers.ts';

export interface ReconcileOptions {
  readonly period: Period;
  readonly source: LedgerSource;
  /** By network. */
  readonly chains: ReadonlyMap<string, ChainScanner>;
  /** The tokens of the configuration, in addition to those of the ledger. */
  readonly accepted: readonly (TokenTerms & Account)[];
  /** The last block to read, by network. Default: the last final one. */
  readonly pinned: ReadonlyMap<string, bigint>;
  /** Read all logs twice. */
  readonly twice: boolean;
  readonly resumeFile: string | undefined;
  readonly onProgress: (network: string, done: bigint, all: bigint) => void;
  /** The most items of a class that are listed singly. */
  readonly listed?: number;
}

/** The most transactions that are looked at to tell authorizations of unknown origin from plain transfers. */
const maxTransactions = 2_000;
const transactionsAtOnce = 8;

/**
 * Compares the ledger with the chains for a period. The same ledger size and the same blocks give the same report.
 * @throws ReconcileError if the ledger or a chain cannot be read completely
 */
export async function reconcile(options: ReconcileOptions): Promise<ReportJson> {
  const { period, chains } = options;
  const names = [...chains.keys()].toSorted();
  const blocks = new Map<string, PinnedBlocks>();
  for (const network of names)
    blocks.set(network, await pinBlocks(chainOf(chains, network), period, options.pinned.get(network)));
  const times = { from: instantText(period.fromMs), to: instantText(period.toMs) };
  const reading = await options.source.open(times);
  const factsWith = (forgetPlain: (payment: PaymentFact) => boolean): LedgerFacts =>
    new LedgerFacts(times, blocks, reading.isReopened, forgetPlain);
  const seen = await readBothSides(options, blocks, reading, factsWith);
  const { ledger, networks, accounts, payees, plain, tally, bridge } = seen;
  const facts = factsWith((payment) => tallyPlain(payment, plain, tally));
  await reading.foldAgain(facts);
  const matcher = new Matcher(facts);
  for (const transfer of seen.kept) matcher.take(transfer);
  const open = openTransactions(facts, matcher, payees, maxTransactions);
  const evidence = await readEvidence(chains, open, accounts);
  const classified = classify({ facts, matcher, evidence, ranges: blocks, payees, tally });
  await refuseContradictions(classified, chains, networks);
  await checkDecimals(facts, options, tally);
  bridge.takeFacts(facts, classified.before, classified.missing);
  const { explanations } = facts;
  return reportJson({
    period: times,
    ledger,
    networks,
    accounts: accounts.map((account) => ({ ...account, bridge: bridgeOf(account, reading, bridge) })),
    sums: classified.ledger,
    tally,
    explanations,
  });
}

/** The ledger and the chains, each read once: it keeps the items that need another look, and knows which plain payments are on the chain. */
async function readBothSides(
  options: ReconcileOptions,
  blocks: ReadonlyMap<string, PinnedBlocks>,
  reading: LedgerReading,
  factsWith: (forgetPlain: (payment: PaymentFact) => boolean) => LedgerFacts,
) {
  const plain = new PlainPayments();
  const facts = factsWith((payment) => plain.add(payment));
  const ledger = await reading.fold(facts);
  const books = allAccounts(facts, options);
  const payees = new Set(books.map(({ network, payTo }) => `${network}/${payTo}`));
  const most = options.listed ?? mostListed;
  const bridge = new BridgeBuilder(payees, most);
  const tally = new Tally(payees, most, (...item) => bridge.note(...item));
  const stray = (transfer: ChainTransfer): void => {
    const { name, fields } = strangerOf(transfer, payees);
    tally.addToGroup(name, { ...fields, why: 'receipt_not_asked' }, transfer);
  };
  const filter = new TransferFilter(facts, plain, payees, { most, stray });
  const networks: NetworkBooks[] = [];
  const accounts: Omit<AccountBooks, 'bridge'>[] = [];
  for (const [network, range] of blocks) {
    const own = books.filter((account) => account.network === network);
    if (own.length === 0) continue;
    const read = await readNetwork(options, network, range, own, filter);
    networks.push(read.network);
    accounts.push(...read.accounts);
  }
  return { ledger, networks, accounts, payees, plain, kept: filter.finish(), tally, bridge };
}

function bridgeOf(account: Account, reading: LedgerReading, bridge: BridgeBuilder): Bridge | undefined {
  const booked = reading.booked(account);
  return booked && { books: booked, lines: bridge.linesOf(account) };
}

function chainOf(chains: ReadonlyMap<string, ChainScanner>, network: string): ChainScanner {
  const chain = chains.get(network);
  if (chain) return chain;
  throw new ReconcileError(
    'no_rpc',
    `the ledger has payments or offers on ${network}, and no RPC for it is known: name one with --rpc ${network}=URL, or a configuration with --config`,
  );
}

type KnownAccount = Account & Pick<AccountBooks, 'token'>;

/** Every token at every payee of its network: any of them may receive money. */
function allAccounts(facts: LedgerFacts, { chains, accepted }: ReconcileOptions): KnownAccount[] {
  const named = [...facts.accounts.values(), ...accepted];
  const tokens = new Map<string, TokenTerms>();
  for (const terms of [...facts.tokens.values(), ...accepted]) {
    const key = `${terms.network}/${terms.asset}`;
    const { network, asset, symbol, decimals } = terms;
    if (!tokens.has(key)) tokens.set(key, { network, asset, symbol, decimals });
  }
  const pairs = new Map<string, KnownAccount>();
  for (const { network, asset } of named) {
    chainOf(chains, network);
    for (const other of named) {
      if (other.network !== network) continue;
      const account = { network, asset, payTo: other.payTo };
      pairs.set(accountKey(account), { ...account, token: tokens.get(`${network}/${asset}`) });
    }
  }
  return [...pairs].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, account]) => account);
}

async function readNetwork(
  options: ReconcileOptions,
  network: string,
  blocks: PinnedBlocks,
  accounts: readonly KnownAccount[],
  filter: TransferFilter,
): Promise<{ readonly network: NetworkBooks; readonly accounts: readonly Omit<AccountBooks, 'bridge'>[] }> {
  const { twice, resumeFile } = options;
  const chain = chainOf(options.chains, network);
  const query = {
    assets: [...new Set(accounts.map(({ asset }) => asset as Address))],
    payees: [...new Set(accounts.map(({ payTo }) => payTo as Address))],
  };
  const onProgress = (done: bigint, all: bigint): void => options.onProgress(network, done, all);
  const scan = { chain, query, twice, resumeFile, onProgress };
  const net = new NetSums();
  for await (const transfers of scanTransfers({ ...scan, from: blocks.from, to: blocks.to }))
    for (const transfer of transfers) {
      net.add(transfer);
      filter.take(transfer);
    }
  let since: Promise<NetSums> | undefined;
  const netUntil = (to: bigint): Promise<NetSums> =>
    (since ??= sumOf(scanTransfers({ ...scan, from: blocks.to + 1n, to })));
  const balances = await readBalances({ chain, blocks, accounts, net, netUntil });
  const completeness: Completeness = balances.completeness ?? (twice ? 'two_passes' : 'sample');
  const { from: fromBlock, to: toBlock, toHash, isCovered } = blocks;
  const unknown = { atoms: null, how: 'no_archive_state' } as const;
  return {
    network: { network, fromBlock, toBlock, toHash, isCovered, completeness },
    accounts: accounts.map((account) => ({
      opening: unknown,
      closing: unknown,
      ...balances.books.get(accountKey(account)),
      ...account,
    })),
  };
}

async function sumOf(pieces: ReturnType<typeof scanTransfers>): Promise<NetSums> {
  const net = new NetSums();
  for await (const transfers of pieces) for (const transfer of transfers) net.add(transfer);
  return net;
}

async function readEvidence(
  chains: ReadonlyMap<string, ChainScanner>,
  wanted: readonly OpenTransaction[],
  accounts: readonly Account[],
): Promise<ReadonlyMap<string, Evidence>> {
  const evidence = new Map<string, Evidence>();
  const pending = [...wanted].values();
  const work = async (): Promise<void> => {
    for (const { network, transaction, from, isAnyToken, place } of pending) {
      const own = accounts.filter((account) => account.network === network);
      const answer = await chainOf(chains, network).evidence({
        transaction: transaction as Hex,
        assets: isAnyToken ? undefined : [...new Set(own.map(({ asset }) => asset as Address))],
        from: [...from] as Address[],
        place: place && { ...place, blockHash: place.blockHash as Hex },
      });
      const what = `the transfers of ${transaction}`;
      evidence.set(transactionKey({ network, transaction }), answered(network, what, answer));
    }
  };
  await Promise.all(Array.from({ length: transactionsAtOnce }, work));
  return evidence;
}

/** A node whose logs of one block and of a period contradict each other lacks data, so a missing transfer proves nothing. */
async function refuseContradictions(
  { contradictions, unseen }: Classified,
  chains: ReadonlyMap<string, ChainScanner>,
  networks: readonly NetworkBooks[],
): Promise<void> {
  const [shown] = contradictions;
  if (shown)
    throw new ReconcileError(
      'logs_incomplete',
      `the RPC for ${shown.network} shows the transfer of ${shown.transaction} among the logs of block ${shown.blockNumber}, but its logs of the period lack it: it does not keep all logs. Nothing was stored: use another RPC`,
    );
  for (const { network, settled, seq, transaction } of unseen) {
    const isProven = networks.some((one) => one.network === network && one.completeness === 'balance');
    if (isProven || !settled?.proof) continue;
    const block = await blockAt(chainOf(chains, network), settled.proof.blockNumber);
    if (block.hash !== settled.proof.blockHash) continue;
    throw new ReconcileError(
      'logs_incomplete',
      `event ${seq} says that ${transaction} is in block ${settled.proof.blockNumber} of ${network}, and the RPC has that very block, but not that transfer: ` +
        'it lacks old logs, or the event is false. Nothing was stored: use an RPC that keeps old logs',
    );
  }
}

async function checkDecimals(facts: LedgerFacts, options: ReconcileOptions, tally: Tally): Promise<void> {
  const termsByToken = new Map<string, TokenTerms>(facts.tokens);
  for (const terms of options.accepted)
    termsByToken.set(`${terms.network}/${terms.asset}/${terms.decimals}`, terms);
  for (const [, { network, asset, decimals }] of [...termsByToken].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const answer = await chainOf(options.chains, network).decimals(asset as Address);
    const found = answered(network, `the decimals of ${asset}`, answer);
    if (found === decimals) continue;
    const fields = { of: 'token', network, asset, decimals, chain_decimals: found ?? null } as const;
    tally.add('token_decimals_differ', fields);
  }
}
