import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { pino } from 'pino';
import type { ConstantChanges } from '../../../src/base/config/constants.ts';
import { resultPartBytes } from '../../../src/base/values/result-parts.ts';
import { removeUnusedUploads } from '../../../src/calls/use-cases/large-result.ts';
import type { ResultStore } from '../../../src/calls/peers/results/result-store.ts';
import { type Bucket, bucketKeys, startBucket } from '../../support/bucket.ts';
import { type TestDatabase } from '../../support/database.ts';
import type { useChain } from '../../support/devnet.ts';
import { type Answer, runnerSecret, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { asRunner, type Leased, leasingRunner, type Paid } from '../../support/leases.ts';

export const otherToken = 'a-secret-of-another-runner-of-length!';
export const leased = `${leasingRunner}
[[runners]]
name = "other"
services = [3]
mode = "lease"
token = "env:OTHER_TOKEN"
`;
const env = { OTHER_TOKEN: otherToken, S3_SECRET: `${bucketKeys.accessKeyId}:${bucketKeys.secretKey}` };

export async function newFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'results-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export const inFolder = (folder: string, more = ''): string =>
  `[result_store]\nlocation = "${folder}"\n${more}\n`;

export function starter(chain: ReturnType<typeof useChain>) {
  return (
    database: TestDatabase,
    tables: string,
    runnerUrl?: string,
    constants: ConstantChanges = {},
  ): Promise<TestGateway> => startTestGateway({ database, chain, env, runnerUrl, tables, constants });
}

export function sendPart(
  gateway: TestGateway,
  { call_id, lease_id }: Leased,
  part: number | string,
  bytes: Buffer,
  bearer = runnerSecret,
): Promise<Answer> {
  return gateway.post(`/runner/calls/${call_id}/result-parts/${part}`, {
    body: new Uint8Array(bytes),
    headers: {
      'content-type': 'application/octet-stream',
      authorization: `Bearer ${bearer}`,
      'x-net-lease-id': lease_id,
    },
  });
}

export const hashOf = (bytes: Buffer): string => `0x${createHash('sha256').update(bytes).digest('hex')}`;

export function complete(
  gateway: TestGateway,
  { call_id, lease_id }: Leased,
  result: object,
): Promise<Answer> {
  return asRunner(gateway, `/runner/calls/${call_id}/complete`, { lease_id, stored_result: result });
}

export const named = (bytes: Buffer) => ({
  content_type: 'video/mp4',
  bytes: bytes.length,
  sha256: hashOf(bytes),
});

export async function sendAll(gateway: TestGateway, lease: Leased, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; at += resultPartBytes) {
    const part = bytes.subarray(at, at + resultPartBytes);
    expect((await sendPart(gateway, lease, at / resultPartBytes, part)).status).toBe(200);
  }
}

export async function download(
  gateway: TestGateway,
  to: Paid,
  more: Record<string, string> = {},
): Promise<{ status: number; headers: Headers; bytes: Buffer }> {
  const response = await fetch(`${gateway.url}${to.path}/result`, { headers: { ...to.bearer, ...more } });
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: response.headers, bytes };
}

/** Every file below a folder. */
export async function filesIn(folder: string): Promise<string[]> {
  const all = await readdir(folder, { recursive: true, withFileTypes: true });
  return all.filter((entry) => entry.isFile()).map(({ name }) => name);
}

/** Two whole parts and a piece. */
export const large = randomBytes(2 * resultPartBytes + 10_001);

interface BucketTable {
  readonly table: string;
  /** The bucket answers with this status, or with the whole if a range was asked for. */
  readonly answers: (fault: Bucket['fault']) => void;
}

export async function bucketTable(): Promise<BucketTable> {
  const bucket = await startBucket();
  const { url } = bucket;
  const table = `[result_store]
location = "${url}/results/paid/"
secret = "env:S3_SECRET"
`;
  return { table, answers: (fault) => void (bucket.fault = fault) };
}

/** The store of a folder, for a sweep of the test's own. */
export function sweep(database: TestDatabase, results: ResultStore): Promise<boolean> {
  return removeUnusedUploads({ pool: database.pool, results, log: pino({ level: 'silent' }) });
}
