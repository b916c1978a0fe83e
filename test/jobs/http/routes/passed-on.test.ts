import { connect } from 'node:net';
import { once } from 'node:events';
import { beforeAll, expect, test } from 'vitest';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import { approvePermit2 } from '../../../../src/devnet/token.ts';
import { useChain } from '../../../support/devnet.ts';
import { payTo } from '../../../support/gateway.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { cancelPermit } from '../../../support/permit2.ts';
import { header, offerOf } from '../../../support/payer.ts';
import { whenOver } from '../../../support/shared.ts';
import { signUpto, type UptoPayment } from '../../../support/upto.ts';
import { soon } from '../../../payments/use-cases/settlement-support.ts';
import { startApi, startRouteGateway, weather } from './support.ts';

const chain = useChain();
beforeAll(() => approvePermit2(chain.chain, chain.token, devnetKeys.payer));

const city = '/weather/paris';
const mebibyte = 1_048_576;

/** Opens a connection of its own that reads the beginning of its answer and nothing more. */
async function readNothing(url: string, payment: UptoPayment): Promise<void> {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port) }).on('error', () => {});
  whenOver(() => void socket.destroy());
  await once(socket, 'connect');
  const headers = Object.entries({ host: 'x', ...header(payment) }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  socket.write(`GET ${city} HTTP/1.1\r\n${headers.join('')}\r\n`);
  await once(socket, 'readable');
}

test('a client that does not read a stream that is passed on pays for it all the same, and gets it by the same payment', async () => {
  const pieces = 24;
  const api = await startApi(async (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', trailer: 'x-price' });
    for (let count = 0; count < pieces; count++)
      if (!response.write(Buffer.alloc(mebibyte, 97))) await once(response, 'drain');
    response.addTrailers({ 'x-price': '0.003 USD' });
    response.end();
  });
  const gateway = await startRouteGateway({
    chain,
    upstream: api.url,
    routes: weather(api.url, 'charge_header = "x-price"\ntimeout_ms = 6_000'),
    constants: { delivery: { maxResultBytes: 32 * mebibyte } },
  });
  const { paid, database } = gateway;
  const payment = await signUpto(offerOf(await paid.get(city)));
  const receipt = async () =>
    (await gateway.get(`/x402/receipts/${payment.accepted.extra['quoteDigest']}`)).json;
  const before = await chain.balance(payTo);
  await readNothing(gateway.routesUrl, payment);
  await soon(database, async () => expect(await receipt()).toMatchObject({ state: 'completed' }));
  expect(await chain.balance(payTo)).toBe(before + 3_000n);
  expect((await paid.get(city, header(payment))).text).toHaveLength(pieces * mebibyte);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a payer that withdraws a payment while its stream is passed on gets its next answer once that is paid', async () => {
  let withdraw: (() => Promise<unknown>) | undefined;
  const api = await startApi(async (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', trailer: 'x-price' });
    response.write('data: one\n\n');
    await withdraw?.();
    response.addTrailers({ 'x-price': '0.003 USD' });
    response.end();
  });
  const routes = weather(api.url, 'charge_header = "x-price"');
  const { paid, database } = await startRouteGateway({ chain, upstream: api.url, routes });
  const sign = async () => signUpto(offerOf(await paid.get(city)));
  const before = await chain.balance(payTo);
  const first = await sign();
  withdraw = () => cancelPermit(chain.rpcUrl, first);
  expect(await paid.get(city, header(first))).toMatchObject({ status: 200, text: 'data: one\n\n' });
  expect(await chain.balance(payTo)).toBe(before);
  const second = await sign();
  withdraw = () => cancelPermit(chain.rpcUrl, second);
  expect((await paid.get(city, header(second))).text).not.toContain('data: one');
  withdraw = undefined;
  const third = await paid.get(city, header(await sign()));
  expect(third).toMatchObject({ status: 200, text: 'data: one\n\n' });
  expect(third.headers.get('payment-response')).not.toBeNull();
  expect(await chain.balance(payTo)).toBe(before + 3_000n);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});
