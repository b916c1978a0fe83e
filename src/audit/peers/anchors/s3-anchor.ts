import type { AnchorConfig } from '../../../base/config/config.ts';
import { readCheckpoint } from '../../../base/values/log/checkpoint.ts';
import { type HttpAnswer, isSuccess } from '../../../base/peers/http/http.ts';
import {
  type Anchor,
  type AnchorAnswer,
  type AnchoredHead,
  directoryOf,
  fileNameOf,
  newestName,
} from './anchor.ts';
import { createS3, type PutCondition } from '../../../base/peers/http/s3.ts';

const timeoutMs = 10_000;

/**
 * Each checkpoint is an object named after its size, which is created once and never replaced. `checkpoint` is the newest one:
 * it is replaced only while it is still the version that was read. The bucket must support conditional writes.
 */
export function s3Anchor(config: Extract<AnchorConfig, { kind: 's3' }>): Anchor {
  const { name, everyMs, endpoint, bucket, prefix } = config;
  const s3 = createS3({ ...config, timeoutMs });
  const keyOf = (origin: string, last: string): string => `${prefix}${directoryOf(origin)}/${last}`;

  const put = async (key: string, note: string, condition: PutCondition): Promise<AnchorAnswer> => {
    const answer = await s3.put(key, note, condition);
    if (answer.kind === 'failed') return { kind: 'failed', cause: answer.cause };
    if (isSuccess(answer.status)) return { kind: 'done' };
    // 409: another write to the same key is under way
    const isTaken = answer.status === 412 || answer.status === 409;
    return { kind: 'failed', cause: isTaken ? 'overtaken' : `status_${answer.status}` };
  };
  const create = async (head: AnchoredHead): Promise<AnchorAnswer> => {
    const key = keyOf(head.origin, fileNameOf(head));
    const created = await put(key, head.note, { kind: 'absent' });
    if (created.kind === 'done' || created.cause !== 'overtaken') return created;
    const known = await s3.get(key);
    if (known.kind === 'failed' || !isSuccess(known.status)) return created;
    const { root } = readCheckpoint(known.body.toString('utf8'));
    return root.equals(head.root) ? { kind: 'done' } : { kind: 'failed', cause: 'another_history' };
  };

  return {
    name,
    everyMs,
    place: `the bucket ${bucket} at ${endpoint}`,
    isFree: true,
    async publish(head, over) {
      const condition = conditionOf(over.kind === 'note' ? over.version : undefined);
      try {
        const created = await create(head);
        return created.kind === 'done'
          ? await put(keyOf(head.origin, newestName), head.note, condition)
          : created;
      } catch {
        return { kind: 'failed', cause: 'no_checkpoint' };
      }
    },
    async newest(origin) {
      const answer = await s3.get(keyOf(origin, newestName));
      if (answer.kind === 'failed') return { kind: 'failed', cause: answer.cause };
      if (answer.status === 404) return { kind: 'none' };
      if (!isSuccess(answer.status)) return { kind: 'failed', cause: `status_${answer.status}` };
      const version = etagOf(answer);
      // without it the object could only be replaced blindly
      if (version === undefined) return { kind: 'failed', cause: 'no_etag' };
      return { kind: 'note', note: answer.body.toString('utf8'), version };
    },
    close: () => s3.close(),
  };
}

function conditionOf(version: string | undefined): PutCondition {
  return version === undefined ? { kind: 'absent' } : { kind: 'unchanged', etag: version };
}

function etagOf({ headers }: Extract<HttpAnswer, { kind: 'response' }>): string | undefined {
  const etag = headers['etag'];
  return typeof etag === 'string' ? etag : undefined;
}
