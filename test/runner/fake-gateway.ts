import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type CallChange, metadataOf } from './support.ts';

/** One request to the lease API, as it came. */
export interface LeaseRequest {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: Record<string, unknown>;
}

type Misbehave = (request: LeaseRequest, response: ServerResponse) => boolean;

/**
 * A gateway's lease API, without a ledger: the documented `/runner/…`, over real HTTP. A lease that is not
 * extended comes back by itself.
 */
export interface FakeGateway {
  readonly url: string;
  readonly requests: readonly LeaseRequest[];
  /** The results and failures that runners reported, once each. */
  readonly completed: ReadonlyMap<number, unknown>;
  readonly failed: {
    readonly callId: number;
    readonly error: unknown;
    readonly retry: unknown;
    readonly retryAfterSecs: unknown;
  }[];
  /** How many leases were given. */
  readonly leased: () => number;
  /** When each lease would have ended without an extension. */
  readonly leaseEnds: readonly number[];
  readonly offer: (...calls: CallChange[]) => void;
  /** Ends a call's lease: its holder has lost it. */
  readonly steal: (callId: number) => void;
  /** Gets every request first; returns true when it has answered, or when no answer is to be sent. */
  misbehave: Misbehave;
  readonly close: () => Promise<void>;
}

export interface FakeGatewayOptions {
  /** How long leases last, whatever a request states. */
  readonly leaseMs?: number;
}

interface Offered {
  readonly change: CallChange;
  attempt: number;
  lease?: { id: string; endsAtMs: number } | undefined;
}

export const leaseToken = 'token-of-the-polling-runner';

export async function startFakeGateway({ leaseMs = 60_000 }: FakeGatewayOptions = {}): Promise<FakeGateway> {
  const open = new Map<number, Offered>();
  const completed = new Map<number, unknown>();
  const completedBy = new Map<number, unknown>();
  const failed: FakeGateway['failed'] = [];
  const requests: LeaseRequest[] = [];
  const leaseEnds: number[] = [];
  let wake = Promise.withResolvers<void>();

  const lease = (max: number, services: readonly number[]): unknown[] => {
    const now = Date.now();
    const due = [...open].filter(
      ([, { change, lease: held }]) =>
        (!held || held.endsAtMs <= now) && services.includes(change.serviceId ?? 1),
    );
    return due.slice(0, max).map(([callId, offered]) => {
      leaseEnds.push(now + leaseMs);
      offered.attempt += 1;
      offered.lease = { id: `lease-${leaseEnds.length}`, endsAtMs: now + leaseMs };
      const { serviceId = 1, jobIndex = 0, contentType = 'text/plain', body = 'some text' } = offered.change;
      return {
        call_id: callId,
        lease_id: offered.lease.id,
        attempt: offered.attempt,
        service_id: serviceId,
        job_index: jobIndex,
        metadata: metadataOf({ ...offered.change, id: callId, attempt: offered.attempt }),
        content_type: contentType,
        body_base64: Buffer.from(body).toString('base64'),
        lease_expires_at: new Date(offered.lease.endsAtMs).toISOString(),
      };
    });
  };

  const answerLeases = async (body: Record<string, unknown>, response: ServerResponse): Promise<void> => {
    const endsAtMs = Date.now() + Number(body['wait_secs']) * 1_000;
    for (;;) {
      const calls = lease(Number(body['max']), body['services'] as number[]);
      const leftMs = endsAtMs - Date.now();
      if (calls.length > 0 || leftMs <= 0) return send(response, 200, { calls });
      await Promise.race([wake.promise, new Promise((resolve) => setTimeout(resolve, Math.min(leftMs, 50)))]);
      if (response.destroyed) return;
    }
  };

  const answerCall = (
    callId: number,
    verb: string,
    body: Record<string, unknown>,
    response: ServerResponse,
  ) => {
    const offered = open.get(callId);
    if (!offered || offered.lease?.id !== body['lease_id']) {
      const again = verb === 'complete' && completedBy.get(callId) === body['lease_id'];
      return again ? send(response, 200, {}) : send(response, 409, { error: 'lost', code: 'lease_lost' });
    }
    if (verb === 'extend') {
      offered.lease = { id: String(body['lease_id']), endsAtMs: Date.now() + leaseMs };
      return send(response, 200, { lease_expires_at: new Date(offered.lease.endsAtMs).toISOString() });
    }
    if (verb === 'complete') {
      completed.set(callId, body['result']);
      completedBy.set(callId, body['lease_id']);
      open.delete(callId);
    } else {
      const { error, retry, retry_after_secs: retryAfterSecs } = body;
      failed.push({ callId, error, retry, retryAfterSecs });
      if (body['retry'] !== true) open.delete(callId);
      offered.lease = undefined;
    }
    return send(response, 200, {});
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks = (await request.toArray()) as Buffer[];
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>;
    const leaseRequest = { path: request.url ?? '', authorization: request.headers.authorization, body };
    requests.push(leaseRequest);
    if (gateway.misbehave(leaseRequest, response)) return;
    if (leaseRequest.authorization !== `Bearer ${leaseToken}`)
      return send(response, 401, { error: 'who are you?', code: 'unauthorized' });
    if (leaseRequest.path === '/runner/leases') return answerLeases(body, response);
    const [, callId, verb] = /^\/runner\/calls\/(\d+)\/(extend|complete|fail)$/.exec(leaseRequest.path) ?? [];
    if (verb === undefined) return send(response, 404, { error: 'no such path', code: 'not_found' });
    return answerCall(Number(callId), verb, body, response);
  };

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const gateway: FakeGateway = {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    requests,
    completed,
    failed,
    leased: () => leaseEnds.length,
    leaseEnds,
    offer(...calls) {
      for (const change of calls) open.set(change.id ?? 7, { change, attempt: 0 });
      wake.resolve();
      wake = Promise.withResolvers();
    },
    steal(callId) {
      const offered = open.get(callId);
      if (offered) offered.lease = { id: 'of another', endsAtMs: Date.now() + 3_600_000 };
    },
    misbehave: () => false,
    async close() {
      server.close().closeAllConnections();
      await once(server, 'close');
    },
  };
  return gateway;
}

export function send(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}
