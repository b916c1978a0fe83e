import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { scanTransfers } from '../../../../src/finance/use-cases/reconcile/scan-transfers.ts';
import { devnetAddress, devnetKeys } from '../../../../src/devnet/accounts.ts';
import type { Address } from '../../../../src/base/values/primitives.ts';
import type { ChainTransfer } from '../../../../src/payments/rules/chain-transfer.ts';
import { createScanner } from '../../../../src/payments/peers/chain/transfer-scan.ts';
import { useChain } from '../../../support/devnet.ts';
import { temporaryFolder } from '../../../support/program.ts';
import { type Lie, type RpcQuestion, startRpcProxy } from '../../../support/rpc-proxy.ts';
import { askNode, sendTokens } from '../../../support/tokens.ts';

const chain = useChain();
const payee: Address = `0x${'ab'.repeat(20)}`;
const payerAddress = devnetAddress('payer');
let last = 0n;

/** Forty transfers to the payee in ten stretches of 30 blocks, the odd ones of the second token. */
beforeAll(async () => {
  for (let stretch = 0; stretch < 10; stretch++) {
    const asset = stretch % 2 === 0 ? chain.token : chain.secondToken;
    const sent = Array.from({ length: 4 }, (_, n) => ({ to: payee, atoms: BigInt(stretch * 10 + n + 1) }));
    await sendTokens(chain.rpcUrl, devnetKeys.payer, asset, sent);
    await askNode(chain.rpcUrl, 'anvil_mine', ['0x1e', '0x1']);
  }
  last = BigInt(String(await askNode(chain.rpcUrl, 'eth_blockNumber', [])));
});

function scannerOf(rpcUrl: string, chainId = 84_532) {
  const scanner = createScanner({ network: `eip155:${chainId}`, chainId, rpcUrl, timeoutMs: 30_000 });
  onTestFinished(() => scanner.close());
  return scanner;
}

async function scan(
  rpcUrl: string,
  options: { twice?: boolean; resumeFile?: string; from?: bigint; to?: bigint; chainId?: number } = {},
): Promise<ChainTransfer[]> {
  const { twice = false, resumeFile, from = 0n, to = last, chainId } = options;
  const query = { assets: [chain.token, chain.secondToken], payees: [payee] };
  const pieces = scanTransfers({
    chain: scannerOf(rpcUrl, chainId),
    query,
    from,
    to,
    twice,
    resumeFile,
    onProgress: () => {},
  });
  const all: ChainTransfer[] = [];
  for await (const transfers of pieces) all.push(...transfers);
  return all;
}

async function behind(lie: Lie): Promise<{ url: string; asked: RpcQuestion[]; lie: Lie }> {
  const proxy = await startRpcProxy(chain.rpcUrl);
  const asked: RpcQuestion[] = [];
  const own = { url: proxy.url, asked, lie };
  proxy.lie = (question) => {
    asked.push(question);
    return own.lie(question);
  };
  return own;
}

interface Filter {
  readonly fromBlock: string;
  readonly toBlock: string;
}

function rangeOf({ method, params }: RpcQuestion): { from: bigint; to: bigint } | undefined {
  if (method !== 'eth_getLogs') return undefined;
  const { fromBlock, toBlock } = params[0] as Filter;
  return { from: BigInt(fromBlock), to: BigInt(toBlock) };
}

const refused = (message: string) => ({ error: { code: -32_005, message } });
const widerThan =
  (most: bigint): Lie =>
  (question) => {
    const range = rangeOf(question);
    return range && range.to - range.from >= most ? refused('block range too wide') : undefined;
  };

test('every transfer to and from a payee is found, of both tokens, in the order of the chain', async () => {
  const found = await scan(chain.rpcUrl);
  expect(found).toHaveLength(40);
  expect(found.every(({ from, to }) => from === payerAddress && to === payee)).toBe(true);
  const amounts = found.map(({ amount }) => amount);
  expect(amounts).toEqual(amounts.toSorted((a, b) => Number(a - b)));
  const places = found.map(({ blockNumber }) => blockNumber);
  expect(places).toEqual(places.toSorted((a, b) => Number(a - b)));
  // of the payer's side the same transfers are those that left
  const query = { assets: [chain.token, chain.secondToken], payees: [payerAddress] };
  const left = await scannerOf(chain.rpcUrl).transfers(query, 0n, last);
  expect(left).toMatchObject({ kind: 'answer' });
  const out = left.kind === 'answer' ? left.value.transfers.filter(({ to }) => to === payee) : [];
  expect(out).toEqual(found);
});

test.each([1n, 7n, 100n])('a node that answers for %d blocks at most gives the same', async (most) => {
  const proxy = await behind(widerThan(most));
  expect(await scan(proxy.url, { to: 60n })).toEqual(await scan(chain.rpcUrl, { to: 60n }));
});

test('a node that gives three logs at most gives the same', async () => {
  const all = await scan(chain.rpcUrl);
  const proxy = await behind((question) => {
    const range = rangeOf(question);
    if (!range) return undefined;
    const hits = all.filter(({ blockNumber }) => blockNumber >= range.from && blockNumber <= range.to);
    return hits.length > 3 && range.to > range.from
      ? refused('query returned more than 3 results')
      : undefined;
  });
  expect(await scan(proxy.url)).toEqual(all);
});

test('a scan of a node that has pruned old logs fails with logs_refused and returns nothing', async () => {
  const proxy = await behind((question) => {
    const range = rangeOf(question);
    return range && range.from < 50n ? refused('missing trie node: history has been pruned') : undefined;
  });
  await expect(scan(proxy.url)).rejects.toMatchObject({
    code: 'logs_refused',
    message: expect.stringMatching(
      /refuses the transfers of the single block 0: .*history has been pruned.*Nothing was stored/,
    ),
  });
});

test('a node that lacks old blocks is reported as such', async () => {
  const proxy = await behind(({ method, params }) =>
    method === 'eth_getBlockByNumber' && String(params[0]).startsWith('0x') ? { result: null } : undefined,
  );
  await expect(scan(proxy.url)).rejects.toMatchObject({ code: 'rpc_unavailable' });
});

test('a node of another chain is reported as such before any other request', async () => {
  await expect(scan(chain.rpcUrl, { chainId: 1 })).rejects.toMatchObject({ code: 'wrong_chain' });
});

/** Leaves the logs out of every second answer for the same range. */
const forgetful = (isWanted: (from: bigint) => boolean): Lie => {
  const seen = new Map<string, number>();
  return (question) => {
    const range = rangeOf(question);
    if (!range) return undefined;
    const key = JSON.stringify(question.params);
    seen.set(key, (seen.get(key) ?? 0) + 1);
    return isWanted(range.from) && seen.get(key) === 2 ? { result: [] } : undefined;
  };
};

/** A node that can be asked for 40 blocks at a time, and fails from a block on. */
async function cutOff(file: string) {
  const capped = widerThan(40n);
  const proxy = await behind((question) => {
    const range = rangeOf(question);
    return range && range.from > 150n && range.to - range.from < 40n
      ? { error: { code: -32_000, message: 'down' } }
      : capped(question);
  });
  await expect(scan(proxy.url, { resumeFile: file })).rejects.toMatchObject({ code: 'logs_refused' });
  proxy.lie = capped;
  proxy.asked.length = 0;
  return proxy;
}

describe('a node that answers differently the second time', () => {
  test('is found out at the first and the last chunk', async () => {
    const proxy = await behind(forgetful((from) => from === 0n));
    await expect(scan(proxy.url)).rejects.toMatchObject({ code: 'answers_differ' });
  });

  test('is found out at every chunk where all are asked for twice', async () => {
    const capped = widerThan(40n);
    const lie = forgetful((from) => from > 60n && from < 200n);
    const both: Lie = (question) => capped(question) ?? lie(question);
    const proxy = await behind(both);
    await expect(scan(proxy.url, { twice: true })).rejects.toMatchObject({ code: 'answers_differ' });
  });

  test('is found out where its block changes between two looks', async () => {
    let looks = 0;
    const proxy = await behind(({ method, params }) => {
      if (method !== 'eth_getBlockByNumber' || BigInt(String(params[0])) !== last) return undefined;
      looks += 1;
      const hash = `0x${String(looks).padStart(64, '0')}`;
      return { result: { number: params[0], hash, timestamp: '0x1' } };
    });
    await expect(scan(proxy.url)).rejects.toMatchObject({ code: 'answers_differ' });
  });
});

describe('a scan that was cut off', () => {
  test('continues where it stopped, and finds the same', async () => {
    const file = path.join(temporaryFolder(), 'scan');
    const proxy = await cutOff(file);
    // what a killed process left half written does no harm
    appendFileSync(file, '{"scan":"half');
    expect(await scan(proxy.url, { resumeFile: file })).toEqual(await scan(chain.rpcUrl));
    const ranges = proxy.asked.flatMap((question) => rangeOf(question) ?? []);
    expect(ranges.every(({ from }) => from > 120n)).toBe(true);
    // once it is whole nothing more is asked than whether the blocks are as they were
    proxy.asked.length = 0;
    expect(await scan(proxy.url, { resumeFile: file })).toEqual(await scan(chain.rpcUrl));
    expect(proxy.asked.filter(({ method }) => method === 'eth_getLogs')).toEqual([]);
  });

  test('begins anew where a block is not the one that it was', async () => {
    const file = path.join(temporaryFolder(), 'scan');
    const proxy = await cutOff(file);
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    const other = `"to_hash":"0x${'1'.repeat(64)}"`;
    writeFileSync(file, `${lines.with(0, lines[0]!.replace(/"to_hash":"0x\w+"/, other)).join('\n')}\n`);
    expect(await scan(proxy.url, { resumeFile: file })).toEqual(await scan(chain.rpcUrl));
    expect(proxy.asked.flatMap((question) => rangeOf(question) ?? [])[0]?.from).toBe(0n);
  });

  test('of another question is not used, and stays', async () => {
    const file = path.join(temporaryFolder(), 'scan');
    await cutOff(file);
    const before = readFileSync(file, 'utf8');
    expect(await scan(chain.rpcUrl, { resumeFile: file, from: 20n })).toHaveLength(
      (await scan(chain.rpcUrl, { from: 20n })).length,
    );
    expect(readFileSync(file, 'utf8').startsWith(before)).toBe(true);
  });

  test('does not prove two passes where it was made in one', async () => {
    const file = path.join(temporaryFolder(), 'scan');
    await scan(chain.rpcUrl, { resumeFile: file });
    const proxy = await behind(() => undefined);
    await scan(proxy.url, { resumeFile: file, twice: true });
    expect(proxy.asked.filter(({ method }) => method === 'eth_getLogs')).not.toEqual([]);
  });

  test.each(['{"at":"2026-11-20","seq":1}\n{"seq":2}\n', 'a note\n', '{"seq":1}'])(
    'is in no file that holds something else, and that is left alone: %j',
    async (text) => {
      const file = path.join(temporaryFolder(), 'ledger.jsonl');
      writeFileSync(file, text);
      await expect(scan(chain.rpcUrl, { resumeFile: file })).rejects.toMatchObject({ code: 'resume_file' });
      expect(readFileSync(file, 'utf8')).toBe(text);
    },
  );

  test('in its first chunk begins anew', async () => {
    const file = path.join(temporaryFolder(), 'scan');
    await scan(chain.rpcUrl, { resumeFile: file });
    writeFileSync(file, readFileSync(file, 'utf8').slice(0, 40));
    expect(await scan(chain.rpcUrl, { resumeFile: file })).toEqual(await scan(chain.rpcUrl));
  });
});

test('the first block of a time is found exactly', async () => {
  const scanner = scannerOf(chain.rpcUrl);
  const end = await scanner.blockAt(last);
  if (end.kind !== 'answer' || !end.value) throw new Error('no block');
  for (const number of [1n, 33n, 150n, last]) {
    const block = await scanner.blockAt(number);
    if (block.kind !== 'answer' || !block.value) throw new Error('no block');
    const { timestampSecs } = block.value;
    const before = await scanner.blockAt(number - 1n);
    const isFirst = before.kind === 'answer' && (before.value?.timestampSecs ?? 0) < timestampSecs;
    if (!isFirst) continue;
    expect(await scanner.firstBlockSince(timestampSecs, end.value)).toMatchObject({
      value: { number, hash: block.value.hash },
    });
  }
  expect(await scanner.firstBlockSince(0, end.value)).toMatchObject({ value: { number: 0n } });
  expect(await scanner.firstBlockSince(end.value.timestampSecs + 1, end.value)).toMatchObject({
    value: undefined,
  });
});
