import { createHash } from 'node:crypto';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import fastify from 'fastify';
import { type TaggedFile } from './etag.ts';

const task = 'tollbook: script of the reference';

interface Read {
  readonly bytes: Uint8Array;
  readonly hash: string;
}

/** Scalar's script has 4 MB, and its package offers it only by a route: another thread loads and hashes it, once. */
export async function readReferenceScript(): Promise<TaggedFile> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { task }, execArgv: [] });
  const { bytes, hash } = await new Promise<Read>((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
  });
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return { body, type: 'text/javascript', etag: `"${hash}"` };
}

async function read(): Promise<Read> {
  const { default: scalar } = await import('@scalar/fastify-api-reference');
  const plugin = fastify();
  await plugin.register(scalar, { routePrefix: '/docs', configuration: { url: 'openapi.json' } });
  const { rawPayload } = await plugin.inject('/docs/js/scalar.js');
  await plugin.close();
  return {
    bytes: new Uint8Array(rawPayload),
    hash: createHash('sha256').update(rawPayload).digest('base64url').slice(0, 22),
  };
}

if (!isMainThread && (workerData as { readonly task?: string } | null)?.task === task) {
  const answer = await read();
  parentPort?.postMessage(answer, [answer.bytes.buffer as ArrayBuffer]);
}
