import { randomBytes, randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PrivateKeyAccount } from 'viem/accounts';
import { header, offerOf, signOffer } from '../support/payer.ts';

/** What customers do. Nothing of it throws: gateways may be away. */
export interface Customers {
  /** Buys a job as any client would, once. */
  buy(serviceId: number): Promise<void>;
  /** Until then they buy a job of service 1 every this often, and ask each gateway for a completion by the free model. */
  stop(): Promise<void>;
}

const everyMs = 400;
const limitMs = 8_000;
/** Each request comes from another client. */
const address = (): string => `10.${randomInt(256)}.${randomInt(256)}.${randomInt(1, 255)}`;

export function startCustomers(
  urls: readonly string[],
  payers: readonly PrivateKeyAccount[],
  freeModel: string,
): Customers {
  let turn = 0;
  let isOver = false;
  const running = new Set<Promise<unknown>>();

  const buy = async (serviceId: number): Promise<void> => {
    turn += 1;
    const url = `${urls[turn % urls.length]}/x402/jobs/${serviceId}/0`;
    const account = payers[turn % payers.length];
    const body = randomBytes(8).toString('hex');
    const headers = { 'content-type': 'text/plain', 'x-forwarded-for': address() };
    try {
      const asked = await post(url, body, headers);
      if (asked.status !== 402 || !account) return;
      const payment = await signOffer(offerOf(asked), { account });
      await post(url, body, { ...headers, ...header(payment) });
    } catch {
      // a gateway is unreachable or silent
    }
  };
  const chat = async (): Promise<void> => {
    const body = JSON.stringify({ model: freeModel, messages: [{ role: 'user', content: 'hello' }] });
    const headers = { 'content-type': 'application/json', 'x-forwarded-for': address() };
    await Promise.all(
      urls.map((url) => post(`${url}/v1/chat/completions`, body, headers).catch(() => undefined)),
    );
  };
  const begin = (act: Promise<void>): void => {
    const done = act.finally(() => running.delete(done));
    running.add(done);
  };
  const shop = async (): Promise<void> => {
    while (!isOver) {
      begin(buy(1));
      begin(chat());
      await sleep(everyMs);
    }
  };
  const shopping = shop();
  return {
    buy,
    async stop() {
      isOver = true;
      await shopping;
      await Promise.all(running);
    },
  };
}

async function post(url: string, body: string, headers: Readonly<Record<string, string>>) {
  const response = await fetch(url, {
    method: 'POST',
    body,
    headers,
    signal: AbortSignal.timeout(limitMs),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: undefined };
}
