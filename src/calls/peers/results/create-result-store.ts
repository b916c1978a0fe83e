import type { ResultStoreConfig } from '../../../base/config/config.ts';
import { folderResults } from './folder-results.ts';
import { type ResultStore, requireKey } from './result-store.ts';
import { type HttpAnswer, isSuccess } from '../../../base/peers/http/http.ts';
import { createS3 } from '../../../base/peers/http/s3.ts';

export function createResultStore(config: ResultStoreConfig): ResultStore {
  return config.kind === 'folder' ? folderResults(config) : bucketResults(config);
}

/** For one part, which has a few MiB. */
const timeoutMs = 20_000;
const connections = 16;

/** An object for each part. */
function bucketResults(config: Extract<ResultStoreConfig, { kind: 's3' }>): ResultStore {
  const s3 = createS3({ ...config, timeoutMs, connections });
  const keyOf = (key: string): string => config.prefix + requireKey(key);
  return {
    async put(key, bytes) {
      const cause = failureOf(await s3.put(keyOf(key), bytes, { kind: 'any' }));
      return cause === undefined ? { kind: 'put' } : { kind: 'failed', cause };
    },
    async get(key, from, maxBytes) {
      const answer = await s3.get(keyOf(key), { from, maxBytes });
      if (answer.kind === 'response' && answer.status === 404) return { kind: 'none' };
      if (answer.kind === 'response' && answer.status === 416) return { kind: 'got', bytes: Buffer.alloc(0) };
      const cause = failureOf(answer);
      if (answer.kind === 'response' && cause === undefined) return { kind: 'got', bytes: answer.body };
      return { kind: 'failed', cause: cause ?? 'unknown' };
    },
    async remove(key) {
      const answer = await s3.remove(keyOf(key));
      const cause = answer.kind === 'response' && answer.status === 404 ? undefined : failureOf(answer);
      return cause === undefined ? { kind: 'removed' } : { kind: 'failed', cause };
    },
    close: () => s3.close(),
  };
}

function failureOf(answer: HttpAnswer): string | undefined {
  if (answer.kind === 'failed') return answer.cause;
  return isSuccess(answer.status) ? undefined : `status_${answer.status}`;
}
