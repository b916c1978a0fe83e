import { signCall } from '../../src/base/values/call-signature.ts';
import {
  type CallReport,
  createRunner,
  type PushAnswer,
  type PushRequest,
  type Runner,
  type RunnerError,
  type RunnerOptions,
} from '../../src/runner/index.ts';

export const secret = 'a secret of sixteen characters or more';
export const quoteDigest = `0x${'ab'.repeat(32)}`;

export interface CallChange {
  readonly id?: number;
  readonly body?: string | Buffer;
  readonly contentType?: string;
  readonly serviceId?: number;
  readonly jobIndex?: number;
  readonly attempt?: number;
  readonly trigger?: string;
  readonly caller?: string;
  /** The secret that signs it. */
  readonly secret?: string;
}

/** The idempotency key of the call with this id. */
export function keyOf(id: number): string {
  return `0x${String(id).padStart(64, '0')}`;
}

/** The metadata of a call: a lease and a push have the same names. */
export function metadataOf({
  id = 7,
  serviceId = 1,
  jobIndex = 0,
  attempt = 1,
  trigger = 'x402',
  caller,
}: CallChange): Record<string, string> {
  return {
    ...(trigger === 'x402' ? paid : { 'x-net-trigger-name': 'a-name', 'x-net-trigger-id': `id-${id}` }),
    'x-net-trigger': trigger,
    'x-net-service-id': String(serviceId),
    'x-net-job-index': String(jobIndex),
    'x-net-call-id': String(id),
    'x-net-idempotency-key': keyOf(id),
    'x-net-attempt': String(attempt),
    ...(caller ? { 'x-net-caller': caller } : {}),
  };
}

const paid = {
  'x-x402-origin': 'x402',
  'x-x402-quote-digest': quoteDigest,
  'x-x402-payment-network': 'eip155:84532',
  'x-x402-payment-asset': '0xa5',
  'x-x402-payment-token': 'USDC',
};

/** A call as the gateway pushes it. */
export function pushed(change: CallChange = {}): PushRequest & { readonly headers: Record<string, string> } {
  const { id = 7, contentType = 'text/plain' } = change;
  const body = Buffer.from(change.body ?? 'some text');
  const metadata = metadataOf(change);
  const timestampSecs = Math.floor(Date.now() / 1_000);
  const signature = signCall({
    secret: change.secret ?? secret,
    id: keyOf(id),
    timestampSecs,
    body,
    metadata,
  });
  return { headers: { ...metadata, ...signature, 'content-type': contentType }, body };
}

/** Posts a call as the gateway does. */
export function post(url: string, { headers, body }: ReturnType<typeof pushed>): Promise<Response> {
  return fetch(url, { method: 'POST', headers, body: new Uint8Array(body) });
}

export function textOf(answer: PushAnswer): string {
  return answer.body.toString('utf8');
}

/** A promise that the test resolves. */
export function gate(): { readonly open: () => void; readonly opened: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { open: resolve, opened: promise };
}

/** A runner, what its hooks were told, and how a call is pushed to it. */
export interface Tried {
  readonly runner: Runner;
  readonly calls: CallReport[];
  readonly errors: RunnerError[];
  readonly push: (change?: CallChange) => Promise<PushAnswer>;
}

export function runnerOf(options: RunnerOptions): Tried {
  const calls: CallReport[] = [];
  const errors: RunnerError[] = [];
  const runner = createRunner({
    onCall: (report) => calls.push(report),
    onError: (error) => errors.push(error),
    ...options,
  });
  return { runner, calls, errors, push: (change) => runner.handle(pushed(change), { secret }) };
}

export function errorOf(answer: PushAnswer): unknown {
  return [answer.status, (JSON.parse(textOf(answer)) as { code: string }).code];
}
