import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PrivateKeyAccount } from 'viem/accounts';
import { askForOffer, sendOnce } from '../chaos/client.ts';
import { createRandom } from '../chaos/random.ts';
import { header, signOffer } from '../support/payer.ts';

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
  const random = createRandom('customers');
  let turn = 0;
  let isOver = false;
  const running = new Set<Promise<unknown>>();

  const buy = async (serviceId: number): Promise<void> => {
    turn += 1;
    const url = urls[turn % urls.length] ?? '';
    const account = payers[turn % payers.length];
    const headers = { 'x-forwarded-for': address() };
    const request = { path: `/x402/jobs/${serviceId}/0`, body: random.hex32(), headers };
    const deadline = AbortSignal.timeout(limitMs);
    const offer = await askForOffer({ urls: [url], deadline }, random, request);
    if (!offer || !account) return;
    const paid = { ...headers, ...header(await signOffer(offer, { account })) };
    await sendOnce(url, { ...request, headers: paid }, AbortSignal.timeout(limitMs));
  };
  const chat = async (): Promise<void> => {
    const body = JSON.stringify({ model: freeModel, messages: [{ role: 'user', content: 'hello' }] });
    const headers = { 'content-type': 'application/json', 'x-forwarded-for': address() };
    const request = { path: '/v1/chat/completions', body, headers };
    await Promise.all(urls.map((url) => sendOnce(url, request, AbortSignal.timeout(limitMs))));
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
