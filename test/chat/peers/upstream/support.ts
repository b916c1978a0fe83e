import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import {
  type ModelUpstream,
  type ModelUpstreamOptions,
  startModelUpstream,
} from '../../../../src/devnet/model-upstream.ts';
import { boundPort } from '../../../../src/devnet/ports.ts';
import type { UpstreamAnswer, UpstreamStreaming } from '../../../../src/chat/peers/upstream/answer.ts';
import {
  createUpstream,
  type Upstream,
  type UpstreamOptions,
} from '../../../../src/chat/peers/upstream/upstream.ts';

/** Runs behind the test, the last one first. */
export function cleanUp(cleanup: () => unknown): void {
  onTestFinished(async () => void (await cleanup()));
}

/** A client whose time-outs no healthy answer meets. */
export function connect(baseUrl: string, options: Partial<UpstreamOptions> = {}): Upstream {
  const upstream = createUpstream({
    name: 'model',
    baseUrl,
    connectTimeoutMs: 20_000,
    firstByteTimeoutMs: 20_000,
    idleTimeoutMs: 20_000,
    totalTimeoutMs: 50_000,
    maxConcurrent: 100,
    maxConcurrentFree: 100,
    stalledReaderTimeoutMs: 20_000,
    maxAnswerBytes: 1_000_000,
    ...options,
  });
  cleanUp(() => upstream.close());
  return upstream;
}

/** The model upstream of the devnet and a client of it. What is under way when the test ends is cut there. */
export async function startModel(
  options: Partial<UpstreamOptions> = {},
  modelOptions: ModelUpstreamOptions = {},
): Promise<{ model: ModelUpstream; upstream: Upstream }> {
  const model = await startModelUpstream(modelOptions);
  const upstream = connect(model.url, options);
  cleanUp(() => model.close());
  return { model, upstream };
}

/** What it returns is not waited for. */
export type Listener = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * An upstream that answers as the test says.
 * @param place path and query of its base URL
 */
export async function serve(
  listener: Listener,
  options: Partial<UpstreamOptions> = {},
  place = '/v1',
): Promise<Upstream> {
  const server = createServer((request, response) => void listener(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const upstream = connect(`http://127.0.0.1:${boundPort(server)}${place}`, options);
  cleanUp(() => server.close().closeAllConnections());
  return upstream;
}

export function bodyOf(prompt: string, change: object = {}): string {
  const messages = [{ role: 'user', content: prompt }];
  return JSON.stringify({ model: 'devnet-small', messages, ...change });
}

/** As the router asks: always with usage. */
export function streamBodyOf(prompt: string): string {
  return bodyOf(prompt, { stream: true, stream_options: { include_usage: true } });
}

export function ask(upstream: Upstream, prompt: string, signal?: AbortSignal): Promise<UpstreamAnswer> {
  return upstream.complete(bodyOf(prompt), { stream: false, ...(signal && { signal }) });
}

export function askStream(upstream: Upstream, prompt: string, signal?: AbortSignal): Promise<UpstreamAnswer> {
  return upstream.complete(streamBodyOf(prompt), { stream: true, ...(signal && { signal }) });
}

export function streaming(answer: UpstreamAnswer): UpstreamStreaming {
  if (answer.kind !== 'streaming') throw new Error(`no stream: ${JSON.stringify(answer)}`);
  return answer;
}

export async function readAll(answer: UpstreamAnswer) {
  const { chunks, ending } = streaming(answer);
  const read = (await Array.fromAsync(chunks)).flat();
  const bytes = Buffer.concat(read.map(({ raw }) => raw));
  return { bytes, roles: read.map(({ role }) => role), ending: await ending };
}
