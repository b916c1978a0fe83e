import { type Paid } from '../../support/leases.ts';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { expect } from 'vitest';
import type { Answer, GatewayClient } from '../../support/gateway.ts';
import { header, type Payment, quoteAndSign } from '../../support/payer.ts';
import { leased } from './large-results-support.ts';
import { listening } from '../../support/listening.ts';

export const job = '/x402/jobs/1/0';
export const allowed = `${leased}\n[callbacks]\n`;

export interface Callback {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at messages whose shape they assert
  readonly json: any;
}

export interface Receiver {
  readonly url: string;
  readonly received: Callback[];
}

/** A client's server. Each request is noted before it is answered; without an answer it stays open until the test ends. */
export async function startReceiver(
  answer: (response: ServerResponse, callback: Callback) => void = (response) =>
    void response.writeHead(204).end(),
): Promise<Receiver> {
  const received: Callback[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (piece) => (text += String(piece)));
    request.on('end', () => {
      const callback = { path: request.url ?? '', headers: request.headers, text, json: JSON.parse(text) };
      received.push(callback);
      answer(response, callback);
    });
  });
  const at = await listening(server);
  return { url: at, received };
}

export const callTo = (url: string): Record<string, string> => ({ 'x-net-callback-url': url });

export interface Called extends Paid {
  readonly answer: Answer;
  readonly payment: Payment;
  readonly digest: string;
  readonly secret: string;
}

/** Pays for a call whose end is to be told to a URL. */
export async function payAndCall(gateway: GatewayClient, url: string, body = 'a body'): Promise<Called> {
  const payment = await quoteAndSign(gateway, job, body);
  const answer = await gateway.post(job, { body, headers: { ...header(payment), ...callTo(url) } });
  expect(answer.status).toBe(202);
  const { quote_digest: digest, receipt_token, callback_secret: secret } = answer.json;
  const bearer = { authorization: `Bearer ${receipt_token}` };
  return { answer, payment, digest, secret, path: `/x402/receipts/${digest}`, bearer };
}

/** What the receipt says of its callback. */
export async function callbackOf(gateway: GatewayClient, { path, bearer }: Paid) {
  return (await gateway.get(path, bearer)).json.callback;
}
