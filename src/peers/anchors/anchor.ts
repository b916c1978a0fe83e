import { mkdir, open, readFile, rename } from 'node:fs/promises';
import path from 'node:path';
import type { AnchorConfig } from '../../config/config.ts';
import { chainAnchor } from './chain-anchor.ts';
import { isSuccess } from '../http/http.ts';
import { createS3 } from './s3.ts';
import { createWebhook } from '../http/webhook.ts';

/** A checkpoint to hand out. */
export interface AnchoredHead {
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
  readonly note: string;
}

export type AnchorAnswer =
  | { readonly kind: 'done' }
  /** In our own words. */
  | { readonly kind: 'failed'; readonly cause: string };

/** What an anchor holds. A `note` comes from outside: it is worth what its signature is. A `head` is on a chain's word. */
export type AnchorReading =
  | { readonly kind: 'note'; readonly note: string }
  | { readonly kind: 'head'; readonly size: number; readonly root: Buffer }
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly cause: string };

/** Somebody else who holds our checkpoints. */
export interface Anchor {
  readonly name: string;
  readonly everyMs: number;
  /** For messages. */
  readonly place: string;
  /** Being told costs nothing, so that it may be told at any time. */
  readonly isFree: boolean;
  publish(head: AnchoredHead): Promise<AnchorAnswer>;
  /** The newest checkpoint that was handed to it; undefined where it cannot be asked. */
  readonly newest: ((origin: string) => Promise<AnchorReading>) | undefined;
  close(): Promise<void>;
}

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

/** A log's own place within an anchor. */
function placeOf(origin: string): string {
  return origin.replaceAll(/[^A-Za-z0-9.-]/g, '_');
}

/** Names that sort by size: every checkpoint stays, so that none has to be overwritten to be lost. */
function nameOf({ size }: AnchoredHead): string {
  return String(size).padStart(16, '0');
}

function folderAnchor({ name, everyMs, folder }: Extract<AnchorConfig, { kind: 'folder' }>): Anchor {
  return {
    name,
    everyMs,
    place: `the folder ${folder}`,
    isFree: true,
    async publish(head) {
      const dir = path.join(folder, placeOf(head.origin));
      try {
        await mkdir(dir, { recursive: true });
        await writeWhole(path.join(dir, nameOf(head)), head.note);
        await writeWhole(path.join(dir, newestName), head.note);
        return { kind: 'done' };
      } catch (error) {
        return { kind: 'failed', cause: codeOf(error) };
      }
    },
    async newest(origin) {
      try {
        const note = await readFile(path.join(folder, placeOf(origin), newestName), 'utf8');
        return { kind: 'note', note };
      } catch (error) {
        const cause = codeOf(error);
        return cause === 'ENOENT' ? { kind: 'none' } : { kind: 'failed', cause };
      }
    },
    close: () => Promise.resolve(),
  };
}

function s3Anchor(config: Extract<AnchorConfig, { kind: 's3' }>): Anchor {
  const { name, everyMs, endpoint, bucket, prefix } = config;
  const s3 = createS3({ ...config, timeoutMs });
  const keyOf = (origin: string, last: string): string => `${prefix}${placeOf(origin)}/${last}`;
  return {
    name,
    everyMs,
    place: `the bucket ${bucket} at ${endpoint}`,
    isFree: true,
    async publish(head) {
      for (const last of [nameOf(head), newestName]) {
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

/** Whole or not at all: whoever reads meanwhile sees what was there before. */
async function writeWhole(file: string, text: string): Promise<void> {
  const half = `${file}.${process.pid}.part`;
  const handle = await open(half, 'w');
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(half, file);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
