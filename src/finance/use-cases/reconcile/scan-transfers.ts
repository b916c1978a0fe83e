import { createHash } from 'node:crypto';
import { canonicalJson } from '../../../base/values/canonical-json.ts';
import type { ChainTransfer } from '../../../payments/rules/chain-transfer.ts';
import type { RpcUnavailable } from '../../../base/peers/rpc/json-rpc.ts';
import { mayBeRange } from '../../../payments/peers/chain/log-range.ts';
import type { ChainScanner } from '../../../payments/peers/chain/transfer-scan.ts';
import type { TransferChunk, TransferQuery } from '../../../payments/peers/chain/transfer-chunk.ts';
import { answered, causeText, ReconcileError, unanswered } from './reconcile-error.ts';
import { openScanState } from './scan-state.ts';

export interface Scan {
  readonly chain: ChainScanner;
  readonly query: TransferQuery;
  /** Both included. */
  readonly from: bigint;
  readonly to: bigint;
  /** Reads every chunk twice; otherwise only the first and the last. */
  readonly twice: boolean;
  /** The file of chunks from which an interrupted scan continues. */
  readonly resumeFile: string | undefined;
  readonly onProgress: (done: bigint, all: bigint) => void;
}

const widestRange = 10_000n;
/** The range is doubled after this many successful chunks in a row. */
const growAfter = 8;

/**
 * All transfers of a range in the order of the chain, in chunks.
 * @throws ReconcileError if the chain does not answer
 */
export async function* scanTransfers(scan: Scan): AsyncGenerator<readonly ChainTransfer[]> {
  const { chain, from, to, resumeFile } = scan;
  if (to < from) return;
  const state =
    resumeFile === undefined
      ? undefined
      : await openScanState(resumeFile, { network: chain.network, scan: nameOf(scan), from, to });
  let next = from;
  if (state) {
    if (!(await areChunksCanonical(chain, state.ends))) await state.clear();
    next = (state.ends.at(-1)?.to ?? from - 1n) + 1n;
    if (next > from) yield* state.chunks();
  }
  let range = widestRange;
  for (let successes = 0; next <= to;) {
    scan.onProgress(next - from, to - from + 1n);
    const end = next + range - 1n < to ? next + range - 1n : to;
    const answer = await chain.transfers(scan.query, next, end);
    if (answer.kind === 'unavailable') {
      range = narrower(scan, answer, next, end);
      successes = 0;
      continue;
    }
    if (scan.twice || next === from || end === to) await compare(scan, answer.value, next, end);
    await state?.save(next, end, answer.value);
    yield answer.value.transfers;
    next = end + 1n;
    successes += 1;
    if (successes % growAfter === 0 && range < widestRange) range *= 2n;
  }
  scan.onProgress(to - from + 1n, to - from + 1n);
}

/** Half of a range that the node refuses. Throws for other failures, and for a range of one block. */
function narrower({ chain }: Scan, answer: RpcUnavailable, from: bigint, to: bigint): bigint {
  const what = `the transfers of the blocks ${from} to ${to}`;
  if (!mayBeRange(answer)) throw unanswered(chain.network, what, answer);
  if (from < to) return (to - from + 1n) / 2n;
  throw new ReconcileError(
    'logs_refused',
    `the RPC for ${chain.network} refuses the transfers of the single block ${from}: ${causeText(answer)}. ` +
      'A node that has pruned old logs answers like this. Nothing was stored: use an RPC that keeps old logs',
  );
}

async function compare(
  { chain, query }: Scan,
  first: TransferChunk,
  from: bigint,
  to: bigint,
): Promise<void> {
  const what = `the transfers of the blocks ${from} to ${to}`;
  const second = answered(chain.network, what, await chain.transfers(query, from, to));
  if (digestOf(first) !== digestOf(second))
    throw unanswered(chain.network, what, { kind: 'unavailable', cause: 'answers_differ' });
}

async function areChunksCanonical(
  chain: ChainScanner,
  ends: readonly { readonly to: bigint; readonly toHash: string }[],
): Promise<boolean> {
  for (const { to, toHash } of ends) {
    const block = answered(chain.network, `block ${to}`, await chain.blockAt(to));
    if (block?.hash !== toHash) return false;
  }
  return true;
}

function digestOf({ toHash, transfers }: TransferChunk): string {
  const plain = transfers.map((transfer) => [
    transfer.transaction,
    transfer.logIndex,
    transfer.blockHash,
    transfer.asset,
    transfer.from,
    transfer.to,
    String(transfer.amount),
  ]);
  return sha256(canonicalJson({ toHash, transfers: plain }));
}

/** Identifies a scan: chunks of another scan are not reused. */
function nameOf({ chain, query, from, twice }: Scan): string {
  const { assets, payees } = query;
  const sorted = { assets: assets.toSorted(), payees: payees.toSorted() };
  return sha256(canonicalJson({ network: chain.network, from: String(from), twice, ...sorted }));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
