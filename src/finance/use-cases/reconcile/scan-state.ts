import { createReadStream } from 'node:fs';
import { appendFile, rm, stat, truncate } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { canonicalJson } from '../../../base/values/canonical-json.ts';
import type { ChainTransfer } from '../../../payments/rules/chain-transfer.ts';
import type { TransferChunk } from '../../../payments/peers/chain/transfer-chunk.ts';
import { ReconcileError } from './reconcile-error.ts';

/** The chunks of one scan that were read before, from its first block on. */
export interface ScanState {
  /** The last block of each chunk and its hash, in order, without gaps. */
  readonly ends: readonly { readonly to: bigint; readonly toHash: string }[];
  chunks(): AsyncGenerator<readonly ChainTransfer[]>;
  save(from: bigint, to: bigint, chunk: TransferChunk): Promise<void>;
  /** Deletes the file. */
  clear(): Promise<void>;
}

const hex = z.string().regex(/^0x[0-9a-f]+$/);
const number = z.string().regex(/^\d+$/).transform(BigInt);
const transferSchema = z.strictObject({
  asset: hex,
  from: hex,
  to: hex,
  amount: number,
  transaction: hex,
  block_number: number,
  block_hash: hex,
  log_index: z.int().min(0),
});
const lineSchema = z.strictObject({
  scan: z.string(),
  from: number,
  to: number,
  to_hash: hex,
  transfers: z.array(transferSchema),
});
type Line = z.infer<typeof lineSchema>;

/**
 * Opens a file with the chunks of a scan; it may hold other scans too. An incomplete last line of a killed process is cut off.
 * @throws ReconcileError if the file is of another kind
 */
export async function openScanState(
  file: string,
  { network, scan, from, to }: { network: string; scan: string; from: bigint; to: bigint },
): Promise<ScanState> {
  const ends: { to: bigint; toHash: string }[] = [];
  let next = from;
  let bytes = 0;
  for await (const { text, line } of linesOf(file)) {
    if (!line) {
      if (bytes === 0) await requireOurs(file, text);
      await truncate(file, bytes);
      break;
    }
    bytes += Buffer.byteLength(text) + 1;
    if (line.scan !== scan || line.from !== next || line.to > to) continue;
    ends.push({ to: line.to, toHash: line.to_hash });
    next = line.to + 1n;
  }
  return {
    ends,
    async *chunks() {
      let at = from;
      for await (const { line } of linesOf(file)) {
        if (line?.scan !== scan || line.from !== at || line.to > to) continue;
        at = line.to + 1n;
        yield line.transfers.map((transfer) => fromLine(network, transfer));
        if (at === next) return;
      }
    },
    async save(first, last, { toHash, transfers }) {
      const line = {
        scan,
        from: String(first),
        to: String(last),
        to_hash: toHash,
        transfers: transfers.map(toLine),
      };
      await appendFile(file, `${canonicalJson(line)}\n`);
    },
    async clear() {
      ends.length = 0;
      next = from;
      await rm(file, { force: true });
    },
  };
}

/** A file with only an incomplete first chunk may be truncated; any other file may not. */
async function requireOurs(file: string, first: string): Promise<void> {
  const isWhole = (await stat(file)).size === Buffer.byteLength(first);
  if (isWhole && first.startsWith('{"from":"')) return;
  throw new ReconcileError(
    'resume_file',
    `${file} was not made by --resume: name a new file, or one of an earlier run`,
  );
}

async function* linesOf(file: string): AsyncGenerator<{ text: string; line: Line | undefined }> {
  const input = createReadStream(file, 'utf8');
  try {
    for await (const text of createInterface({ input, crlfDelay: Infinity }))
      yield { text, line: readLine(text) };
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
}

function readLine(text: string): Line | undefined {
  try {
    return lineSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function toLine({ asset, from, to, amount, transaction, blockNumber, blockHash, logIndex }: ChainTransfer) {
  return {
    asset,
    from,
    to,
    amount: String(amount),
    transaction,
    block_number: String(blockNumber),
    block_hash: blockHash,
    log_index: logIndex,
  };
}

function fromLine(network: string, line: Line['transfers'][number]): ChainTransfer {
  const { asset, from, to, amount, transaction } = line;
  return {
    network,
    asset,
    from,
    to,
    amount,
    transaction,
    blockNumber: line.block_number,
    blockHash: line.block_hash,
    logIndex: line.log_index,
  };
}
