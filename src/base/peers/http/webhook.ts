import { signWebhook } from '../../values/call-signature.ts';
import type { RotatingSecret } from '../../values/rotating-secret.ts';
import { createHttpPool, type HttpAnswer, type HttpLookup, isSuccess } from './http.ts';

/** A message to the operator. A receiver recognizes a repeated message by its id. */
export interface WebhookMessage {
  /** Visible ASCII without dots, at most 200 characters. */
  readonly id: string;
  readonly timestampSecs: number;
  /** JSON. */
  readonly body: string;
}

export type WebhookAnswer =
  | { readonly kind: 'delivered' }
  /** The receiver may have got the message nevertheless. */
  | { readonly kind: 'failed'; readonly cause: string };

export interface Webhook {
  /**
   * One POST, never repeated; a 2xx means delivered.
   * @throws TypeError for a malformed id or time, if messages are signed
   */
  send(message: WebhookMessage): Promise<WebhookAnswer>;
  /** Waits for running messages, then drops the connections. */
  close(): Promise<void>;
}

export interface WebhookOptions {
  readonly url: string;
  /** Signs every message as Standard Webhooks does; its UTF-8 bytes are the key. */
  readonly secret?: string | RotatingSecret;
  /** Over the whole exchange. */
  readonly timeoutMs: number;
  /** Resolves the host for a connection; by default the system does. */
  readonly lookup?: HttpLookup;
}

const maxResponseBytes = 64 * 1024;

/**
 * A client of the operator's webhook.
 * @throws TypeError if the URL is not one: a mistake of the configuration
 */
export function createWebhook({ url, secret, timeoutMs, lookup }: WebhookOptions): Webhook {
  const { pathname, search } = new URL(url);
  const pool = createHttpPool(url, { lookup });
  const target = { method: 'POST', path: pathname + search, timeoutMs, maxResponseBytes } as const;
  return {
    async send({ id, timestampSecs, body }) {
      const content = Buffer.from(body, 'utf8');
      const headers =
        secret === undefined
          ? { 'webhook-id': id, 'webhook-timestamp': String(timestampSecs) }
          : signWebhook({ secret, id, timestampSecs, body: content });
      const typed = { ...headers, 'content-type': 'application/json' };
      return judge(await pool.request({ ...target, headers: typed, body: content }));
    },
    close: () => pool.close(),
  };
}

function judge(answer: HttpAnswer): WebhookAnswer {
  // the status counts, also if the body is incomplete
  const status = answer.kind === 'response' ? answer.status : answer.head?.status;
  if (status !== undefined && isSuccess(status)) return { kind: 'delivered' };
  if (answer.kind === 'failed' && status === undefined) return { kind: 'failed', cause: answer.cause };
  return { kind: 'failed', cause: `status_${status}` };
}
