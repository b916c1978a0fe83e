import { once } from 'node:events';
import { createServer } from 'node:http';
import { boundPort } from '../src/devnet/ports.ts';
import { hex32Of, paidJob, payTo } from '../test/support/synthetic-ledger.ts';

/** The block of the first synthetic job; each later one has its own block. */
const firstBlock = 1_000;
const transferred = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const payers = 50;
const hashOf = (block: number): string => hex32Of(`block ${block - firstBlock}`);
const hexOf = (value: number | bigint): string => `0x${value.toString(16)}`;
const wordOf = (hex: string): string => `0x${hex.slice(2).padStart(64, '0')}`;

/** This many jobs were paid between two times (Unix seconds), so many at a time. */
export interface PaidJobs {
  readonly jobs: number;
  readonly atOnce: number;
  readonly fromSecs: number;
  readonly toSecs: number;
}

export interface SyntheticNode {
  readonly url: string;
  show(paid: PaidJobs): void;
  stop(): Promise<void>;
}

interface Job {
  readonly asset: string;
  readonly payer: string;
}

/** Answers as the node of a chain on which the synthetic jobs were paid: a real chain would take hours to make this many transfers. */
export async function startSyntheticNode(): Promise<SyntheticNode> {
  const known = Array.from({ length: payers }, (_, n) => jobOf(n));
  const asset = known[0]?.asset ?? '';
  let paid: PaidJobs = { jobs: 0, atOnce: 1, fromSecs: 0, toSecs: 0 };
  /** The blocks that were shown, by their hashes. */
  const shown = new Map<string, number>();
  const lastPaid = (): number => firstBlock + paid.jobs - 1;

  const timeOf = (block: number): number => {
    if (block < firstBlock) return paid.fromSecs - 60;
    if (block > lastPaid()) return paid.toSecs + 60;
    const together = Math.floor((block - firstBlock) / paid.atOnce) * paid.atOnce;
    return paid.fromSecs + Math.floor(((paid.toSecs - paid.fromSecs) * together) / paid.jobs);
  };
  const blockOf = (block: number): object | null => {
    if (block > lastPaid() + 1) return null;
    const hash = hashOf(block);
    shown.set(hash, block);
    return {
      number: hexOf(block),
      hash,
      parentHash: hashOf(block - 1),
      timestamp: hexOf(timeOf(block)),
    };
  };
  const logOf = (block: number): object => {
    const n = block - firstBlock;
    return {
      address: asset,
      topics: [transferred, wordOf(known[n % payers]?.payer ?? ''), wordOf(payTo)],
      data: wordOf(hexOf(amountOf(n))),
      blockNumber: hexOf(block),
      blockHash: hashOf(block),
      transactionHash: hex32Of(`transaction ${n}`),
      logIndex: hexOf(n % 7),
    };
  };
  const logsOf = ({ fromBlock, toBlock, topics }: LogFilter): object[] => {
    if (topics[1]) return [];
    const [from, to] = [Math.max(Number(fromBlock), firstBlock), Math.min(Number(toBlock), lastPaid())];
    return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => logOf(from + i));
  };
  const balanceAt = (blockHash = ''): bigint => {
    const block = Math.min(shown.get(blockHash) ?? Infinity, lastPaid());
    return block < firstBlock ? 0n : sumOfFirst(block - firstBlock + 1);
  };
  const answer = ({ method, params }: Question): unknown => {
    switch (method) {
      case 'eth_chainId':
        return hexOf(84_532);
      case 'eth_getBlockByNumber':
        return blockOf(
          params[0] === 'finalized' || params[0] === 'latest' ? lastPaid() + 1 : Number(params[0]),
        );
      case 'eth_getLogs':
        return logsOf(params[0] as LogFilter);
      case 'eth_call': {
        const [{ data }, at] = params as [{ data: string }, { blockHash?: string } | string];
        const isBalance = data.startsWith('0x70a08231');
        return wordOf(hexOf(isBalance ? balanceAt(typeof at === 'string' ? undefined : at.blockHash) : 6));
      }
      default:
        throw new Error(`the synthetic node was asked ${method}`);
    }
  };

  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      const question = JSON.parse(text) as Question;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ jsonrpc: '2.0', id: question.id, result: answer(question) }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${boundPort(server)}`,
    show: (jobs) => void (paid = jobs),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

interface Question {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

interface LogFilter {
  readonly fromBlock: string;
  readonly toBlock: string;
  readonly topics: readonly unknown[];
}

const amountOf = (n: number): bigint => 1_000n * BigInt(1 + (n % 3));

/** What the first jobs paid together. */
function sumOfFirst(jobs: number): bigint {
  const [wholes, rest] = [Math.floor(jobs / 3), jobs % 3];
  const three = amountOf(0) + amountOf(1) + amountOf(2);
  return BigInt(wholes) * three + (rest > 0 ? amountOf(0) : 0n) + (rest > 1 ? amountOf(1) : 0n);
}

function jobOf(n: number): Job {
  const verified = paidJob(n).find(({ event }) => event.type === 'payment_verified')?.event;
  if (verified?.type !== 'payment_verified') throw new Error('a synthetic job without a payment');
  const { asset, payer } = verified.data;
  return { asset, payer };
}
