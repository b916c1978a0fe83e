import type { IncomingMessage } from 'node:http';
import { type CallMetadata, verifyCall } from '../base/values/call-signature.ts';
import { type Answer, HttpProblem, type ListenOptions, listen, readBody } from './http-service.ts';

/** A call that arrived with good signatures. */
export interface EchoCall {
  /** The webhook id: the same again when a call is delivered again. */
  readonly id: string;
  readonly timestampSecs: number;
  readonly metadata: CallMetadata;
  readonly body: Buffer;
}

export interface EchoRunnerOptions extends ListenOptions {
  /** The secret with which the gateway signs calls to this runner. */
  readonly secret: string;
  /** Sees each verified call before it is answered: may delay it, or fail it (status 500) by throwing. */
  readonly onCall?: (call: EchoCall) => void | Promise<void>;
}

export interface EchoRunner {
  /** Where calls go, path included. */
  readonly url: string;
  /** The last thousand verified calls, oldest first, repeated deliveries included. */
  readonly calls: readonly EchoCall[];
  readonly close: () => Promise<void>;
}

const maxBodyBytes = 16 * 1024 * 1024;
const callsKept = 1000;

/**
 * Starts an example runner: `POST /calls` verifies the signatures (401 when they are bad) and answers
 * `{metadata, body_base64}`.
 * @throws when the port is taken
 */
export async function startEchoRunner(options: EchoRunnerOptions): Promise<EchoRunner> {
  const calls: EchoCall[] = [];
  const service = await listen(async (request) => {
    requireRoute(request);
    const call = await verifiedCall(request, options.secret);
    calls.push(call);
    if (calls.length > callsKept) calls.shift();
    await options.onCall?.(call);
    return echo(call);
  }, options);
  return { url: `${service.url}/calls`, calls, close: () => service.close() };
}

function requireRoute(request: IncomingMessage): void {
  if (request.url !== '/calls') throw new HttpProblem(404, 'calls go to /calls');
  if (request.method !== 'POST') throw new HttpProblem(405, 'calls are posted');
}

async function verifiedCall(request: IncomingMessage, secret: string): Promise<EchoCall> {
  const body = await readBody(request, maxBodyBytes);
  const nowSecs = Math.floor(Date.now() / 1000);
  const verification = verifyCall({ secret, headers: request.headers, body, nowSecs });
  if (!verification.ok) throw new HttpProblem(401, verification.reason);
  const { id, timestampSecs, metadata } = verification;
  return { id, timestampSecs, metadata, body };
}

function echo({ metadata, body }: EchoCall): Answer {
  return { status: 200, value: { metadata, body_base64: body.toString('base64') } };
}
