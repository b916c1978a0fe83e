import { expect, test } from 'vitest';
import { noteSigner, openCheckpoint, parseVerifierKey } from '../../../src/base/values/log/checkpoint.ts';
import {
  isIncluded,
  leafHash,
  nodeHash,
  RightEdge,
  splitHashes,
} from '../../../src/base/values/log/merkle.ts';
import { issueOperatorToken } from '../../../src/accounts/use-cases/operator-tokens.ts';
import { receiptKeysOf, receiptToken } from '../../../src/payments/use-cases/receipt-keys.ts';
import type { LogConsistency, LogProofs } from '../../../src/audit/http/schemas/log.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { readHead, readLeaves } from '../../../src/audit/store/log.ts';
import { token as acceptedToken } from '../../base/config/support.ts';
import { booksConfigOf, type BooksOptions, startBooks } from '../../support/books.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import {
  appendRefusals,
  rootOfEvents,
  appendAll,
  testSeed,
  testSigner,
  testVerifier,
  isConsistent,
} from '../../support/log.ts';
import { busyLedger } from '../../support/synthetic-ledger.ts';
import { eventually } from '../../support/wait.ts';

async function auditToken(database: TestDatabase): Promise<Record<string, string>> {
  const lane = openLane({ url: database.url, role: writerRole });
  const { token } = await issueOperatorToken(
    { ...database, lane },
    { name: 'auditor', scopes: ['audit:read'] },
  );
  await lane.close();
  return { authorization: `Bearer ${token}` };
}

async function sealedAt(url: string, size: number, verifier = testVerifier) {
  return eventually(async () => {
    const note = await (await fetch(`${url}/log/checkpoint`)).text();
    const head = openCheckpoint(note, verifier);
    expect(head.size).toBe(size);
    return { ...head, note };
  });
}

const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer());
const unbase64 = (text: string) => Buffer.from(text, 'base64');

test('the whole tree can be rebuilt from the public checkpoint and tiles', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 700);
  const { url } = await startBooks(database);
  const { root } = await sealedAt(url, 700);
  const edge = new RightEdge();
  const rows: Buffer[] = [];
  for (const path of ['000', '001', '002.p/188']) {
    const response = await fetch(`${url}/log/tile/0/${path}`);
    expect(response.headers.get('content-type')).toBe('application/octet-stream');
    expect(response.headers.get('cache-control')).toContain('immutable');
    const hashes = splitHashes(await bytesOf(response));
    rows.push(...hashes);
    for (const hash of hashes) edge.append(hash);
  }
  expect(rows).toHaveLength(700);
  expect(edge.root()).toEqual(root);
  const above = splitHashes(await bytesOf(await fetch(`${url}/log/tile/1/000.p/2`)));
  const perfect = (hashes: Buffer[]): Buffer =>
    hashes.length === 1
      ? hashes[0]!
      : perfect(hashes.flatMap((hash, i) => (i % 2 ? [nodeHash(hashes[i - 1]!, hash)] : [])));
  expect(above).toEqual([perfect(rows.slice(0, 256)), perfect(rows.slice(256, 512))]);
});

test('the entries are the events, readable only with the scope audit:read', async () => {
  const database = await createDatabase();
  await appendAll(database, busyLedger().take(40).toArray());
  const headers = await auditToken(database);
  const { url } = await startBooks(database);
  await sealedAt(url, 41);
  const path = `${url}/log/tile/entries/000.p/41`;
  expect((await fetch(path)).status).toBe(401);
  const bundle = await bytesOf(await fetch(path, { headers }));
  const leaves: Buffer[] = [];
  for (let at = 0; at < bundle.length;) {
    const length = bundle.readUInt16BE(at);
    leaves.push(bundle.subarray(at + 2, at + 2 + length));
    at += 2 + length;
  }
  expect(leaves).toEqual(await readLeaves(database.pool, 0, 41));
});

test('there is no tile that the log does not have, however its address is written', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 5);
  const { url } = await startBooks(database);
  await sealedAt(url, 5);
  expect((await fetch(`${url}/log/tile/0/000.p/5`)).status).toBe(200);
  for (const path of [
    'tile/0/000',
    'tile/0/000.p/6',
    'tile/0/001.p/1',
    'tile/1/000.p/1',
    'tile/0/x000/000.p/5',
    'tile/0/000.p/05',
    'tile/-1/000',
    "tile/0/000';select",
    'tile/0/%2e%2e/000.p/5',
  ])
    expect([path, (await fetch(`${url}/log/${path}`)).status]).toEqual([path, 404]);
});

test('an event is proven at the newest and an older head, and a consistency proof links the two heads', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 20);
  const { url } = await startBooks(database);
  const old = await sealedAt(url, 20);
  await appendRefusals(database, 13);
  const next = await sealedAt(url, 33);
  const [leaf] = await readLeaves(database.pool, 10, 1);
  for (const head of [old, next]) {
    const answer = (await (await fetch(`${url}/log/proof?seq=11&size=${head.size}`)).json()) as LogProofs;
    expect(answer).toMatchObject({ checkpoint: head.note, tree_size: head.size, pending: 0 });
    const proof = answer.proofs[0]!;
    expect(unbase64(proof.leaf_hash)).toEqual(leafHash(leaf!));
    expect(isIncluded({ index: 10, ...head }, leafHash(leaf!), proof.hashes.map(unbase64))).toBe(true);
    const text = ['c2sp.org/tlog-proof@v1', 'index 10', ...proof.hashes, '', head.note].join('\n');
    expect(proof.tlog_proof).toBe(text);
  }
  const { hashes } = (await (await fetch(`${url}/log/consistency?from=20&to=33`)).json()) as LogConsistency;
  expect(isConsistent(old, next, hashes.map(unbase64))).toBe(true);
});

test("every event of a receipt is proven; the payer's token shows the events themselves", async () => {
  const database = await createDatabase();
  const history = busyLedger().take(57).toArray();
  await appendAll(database, history);
  const receiptKeys = ['the-receipt-key-that-is-in-use-now', 'the-receipt-key-that-will-be-next-'] as const;
  const { url } = await startBooks(database, {
    top: `facilitator_url = "http://127.0.0.1:9"
confirm = "never"
rate_per_native_unit = "3200.00"
receipt_key = ["env:KEY", "env:NEXT_KEY"]`,
    tables: acceptedToken,
    env: { KEY: receiptKeys[0], NEXT_KEY: receiptKeys[1] },
  });
  const head = await sealedAt(url, 57);
  const digest = history[2]!.stream;
  const answer = (await (await fetch(`${url}/log/proof?quote_digest=${digest}`)).json()) as LogProofs;
  expect(answer.proofs).toHaveLength(7);
  for (const { seq, leaf_hash, hashes } of answer.proofs)
    expect(isIncluded({ index: seq - 1, ...head }, unbase64(leaf_hash), hashes.map(unbase64))).toBe(true);
  expect(JSON.stringify(answer)).not.toContain('leaf_base64');
  const ask = (bearer: string) =>
    fetch(`${url}/log/proof?quote_digest=${digest}`, { headers: { authorization: `Bearer ${bearer}` } });
  const tokenOf = (key: string) =>
    receiptToken(receiptKeysOf([key], Buffer.alloc(32)), digest as `0x${string}`);
  expect((await ask(tokenOf('the-receipt-key-of-another-gateway'))).status).toBe(401);
  // the second key is that of gateways which go before in the change, or were before it
  for (const key of receiptKeys) {
    const { proofs } = (await (await ask(tokenOf(key))).json()) as LogProofs;
    for (const { leaf_hash, leaf_base64 } of proofs)
      expect(unbase64(leaf_hash)).toEqual(leafHash(unbase64(leaf_base64 ?? '')));
  }
});

test('a proof of what the log does not have is 404, and of what is not a question 400', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 5);
  const { url } = await startBooks(database);
  await sealedAt(url, 5);
  expect((await fetch(`${url}/log/proof?seq=5`)).status).toBe(200);
  for (const [query, status] of [
    ['seq=0', 400],
    ['seq=6', 404],
    ['seq=1&size=4', 404],
    ['seq=1&quote_digest=0x', 400],
    ["seq=1'--", 400],
    ['', 400],
    [`quote_digest=0x${'1'.repeat(64)}`, 404],
    [`quote_digest=0x${'1'.repeat(64)}&size=5`, 400],
    ['seq=9007199254740993', 400],
  ] as const)
    expect([query, (await fetch(`${url}/log/proof?${query}`)).status]).toEqual([query, status]);
});

test('the log serves only committed data while it grows', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 10);
  const { url } = await startBooks(database);
  await sealedAt(url, 10);
  for (let round = 0; round < 10; round++) {
    const appending = appendRefusals(database, 10);
    const note = await (await fetch(`${url}/log/checkpoint`)).text();
    const { size, root } = openCheckpoint(note, testVerifier);
    expect(await readHead(database.pool, testSigner.name, size)).toMatchObject({ note });
    expect(root).toEqual(await rootOfEvents(database, size));
    await appending;
  }
  await sealedAt(url, 110);
});

function withKeys(inUse: Buffer, second?: Buffer): BooksOptions {
  return {
    key: second ? '["env:LOG_KEY", "env:SECOND_KEY"]' : '"env:LOG_KEY"',
    env: { LOG_KEY: inUse.toString('hex'), SECOND_KEY: second?.toString('hex') ?? '' },
  };
}

test('while the key of the log is replaced, those who know either public key verify its checkpoints', async () => {
  const database = await createDatabase();
  const next = Buffer.alloc(32, 43);
  const gateway = await startBooks(database);
  const nextVerifier = parseVerifierKey(noteSigner(testSigner.name, [next]).verifierKeys[0]);
  const noteOf = async (count: number, verifier = testVerifier) => {
    await appendRefusals(database, 5);
    return (await sealedAt(gateway.url, count, verifier)).note;
  };
  expect(openCheckpoint(await noteOf(5), testVerifier).size).toBe(5);
  for (const [inUse, second, count] of [
    [testSeed, next, 10],
    [next, testSeed, 15],
  ] as const) {
    expect(await gateway.reload(await booksConfigOf(withKeys(inUse, second)))).toEqual([]);
    const note = await noteOf(count);
    for (const verifier of [testVerifier, nextVerifier])
      expect(openCheckpoint(note, verifier).size).toBe(count);
  }
  await gateway.reload(await booksConfigOf(withKeys(next)));
  const note = await noteOf(20, nextVerifier);
  expect(openCheckpoint(note, nextVerifier).size).toBe(20);
  expect(() => openCheckpoint(note, testVerifier)).toThrow(/another key/);
});
