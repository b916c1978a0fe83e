import { mkdir, open, readFile, rename } from 'node:fs/promises';
import path from 'node:path';
import type { AnchorConfig } from '../../config/config.ts';
import type { Anchor, AnchoredHead } from './anchor.ts';
import { chainAnchor } from './chain-anchor.ts';
import { isSuccess } from '../http/http.ts';
import { createS3 } from './s3.ts';
import { createWebhook } from '../http/webhook.ts';

const timeoutMs = 10_000;
const newestName = 'checkpoint';

/** A client of one configured anchor. */
export function createAnchor(config: AnchorConfig): Anchor {
  switch (config.kind) {
    case 'folder':
      return folderAnchor(config);
    case 's3':
      return s3Anchor(config);
    case 'webhook':
      return webhookAnchor(config);
    case 'chain':
      return chainAnchor(config);
  }
}

/** The directory of one log within an anchor. */
function directoryOf(origin: string): string {
  return origin.replaceAll(/[^A-Za-z0-9.-]/g, '_');
}

/** Names sort by size. Every checkpoint keeps a file of its own: none is overwritten. */
function fileNameOf({ size }: AnchoredHead): string {
  return String(size).padStart(16, '0');
}

function folderAnchor({ name, everyMs, folder }: Extract<AnchorConfig, { kind: 'folder' }>): Anchor {
  return {
    name,
    everyMs,
    place: `the folder ${folder}`,
    isFree: true,
    async publish(head) {
      const dir = path.join(folder, directoryOf(head.origin));
      try {
        await mkdir(dir, { recursive: true });
        await writeWhole(path.join(dir, fileNameOf(head)), head.note);
        await writeWhole(path.join(dir, newestName), head.note);
        return { kind: 'done' };
      } catch (error) {
        return { kind: 'failed', cause: errorCodeOf(error) };
      }
    },
    async newest(origin) {
      try {
        const note = await readFile(path.join(folder, directoryOf(origin), newestName), 'utf8');
        return { kind: 'note', note };
      } catch (error) {
        const cause = errorCodeOf(error);
        return cause === 'ENOENT' ? { kind: 'none' } : { kind: 'failed', cause };
      }
    },
    close: () => Promise.resolve(),
  };
}

function s3Anchor(config: Extract<AnchorConfig, { kind: 's3' }>): Anchor {
  const { name, everyMs, endpoint, bucket, prefix } = config;
  const s3 = createS3({ ...config, timeoutMs });
  const keyOf = (origin: string, last: string): string => `${prefix}${directoryOf(origin)}/${last}`;
  return {
    name,
    everyMs,
    place: `the bucket ${bucket} at ${endpoint}`,
    isFree: true,
    async publish(head) {
      for (const last of [fileNameOf(head), newestName]) {
        const answer = await s3.put(keyOf(head.origin, last), head.note);
        if (answer.kind === 'failed') return { kind: 'failed', cause: answer.cause };
        if (!isSuccess(answer.status)) return { kind: 'failed', cause: `status_${answer.status}` };
      }
      return { kind: 'done' };
    },
    async newest(origin) {
      const answer = await s3.get(keyOf(origin, newestName));
      if (answer.kind === 'failed') return { kind: 'failed', cause: answer.cause };
      if (answer.status === 404) return { kind: 'none' };
      if (!isSuccess(answer.status)) return { kind: 'failed', cause: `status_${answer.status}` };
      return { kind: 'note', note: answer.body.toString('utf8') };
    },
    close: () => s3.close(),
  };
}

function webhookAnchor(config: Extract<AnchorConfig, { kind: 'webhook' }>): Anchor {
  const webhook = createWebhook({ ...config, timeoutMs });
  return {
    name: config.name,
    everyMs: config.everyMs,
    place: `the webhook at ${new URL(config.url).host}`,
    isFree: true,
    publish({ origin, size, note }) {
      return webhook
        .send({
          id: `checkpoint-${size}`,
          timestampSecs: Math.floor(Date.now() / 1_000),
          body: JSON.stringify({ type: 'checkpoint', origin, size, checkpoint: note }),
        })
        .then((answer) => (answer.kind === 'delivered' ? { kind: 'done' } : answer));
    },
    newest: undefined,
    close: () => webhook.close(),
  };
}

/** Writes a file atomically: a concurrent reader sees the old text or the new one. */
async function writeWhole(file: string, text: string): Promise<void> {
  const partFile = `${file}.${process.pid}.part`;
  const handle = await open(partFile, 'w');
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(partFile, file);
}

function errorCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
