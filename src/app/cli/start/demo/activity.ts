import { generatePrivateKey } from 'viem/accounts';
import type { Hex } from '../../../../base/values/primitives.ts';
import { chunksOf } from '../../../../base/values/chunks.ts';
import { devnetAddress, devnetKeys } from '../../../../devnet/accounts.ts';
import { payForOneJob } from '../../../../devnet/client.ts';
import type { DemoClock } from '../../../../devnet/demo-clock.ts';
import type { DevnetDescription } from '../../../../devnet/description.ts';
import { transfer } from '../../../../devnet/token.ts';
import { addWallet, call, numbersFrom, type Person, signInByPassword, signInByWallet } from './people.ts';

/** What the activity is made with. */
export interface DemoSite {
  readonly devnet: DevnetDescription;
  readonly clock: DemoClock;
  /** Records that a transaction paid a payment back. */
  readonly recordRefund: (quoteDigest: Hex, transaction: Hex) => Promise<void>;
  readonly onDay: (text: string) => void;
}

/** A body with this beginning is refused by the runner of the demo: its call becomes a dead letter. */
export const refusedByRunner = 'damaged';

const dayMs = 86_400_000;
const days = 31;
/** Simultaneous requests of one person. */
const atOnce = 4;

interface Keys {
  readonly website: string;
  readonly reports: string;
  readonly laptop: string;
  readonly laptopId: number;
}

/** Makes a month of activity up to now, each request at its own time; every one is a request as clients make it. */
export async function makeMonth(site: DemoSite, beginMs: number, endMs: number): Promise<void> {
  const { devnet, clock } = site;
  const random = numbersFrom('a month of a devnet');
  const person = await openPerson(devnet);
  const keys = await makeKeys(person);
  const stranger = await openStranger(devnet);
  let owed: Hex | undefined;
  for (let day = 0; day < days; day++) {
    const weekday = new Date(beginMs + day * dayMs).getUTCDay();
    const isQuiet = weekday === 0 || weekday === 6;
    for (const hour of isQuiet ? [11] : [7, 11, 16]) {
      const at = beginMs + day * dayMs + (hour - 6 + random()) * 3_600_000;
      if (at >= endMs - 60_000) break;
      await clock.moveTo(new Date(at));
      await chats(devnet, keys, random, day, isQuiet ? 4 : 9);
      if (hour === 11)
        await call(
          devnet.gateway_url,
          'POST',
          '/v1/chat/completions',
          ask('devnet-small', 'Good morning', 40),
          bearer(stranger),
        );
    }
    if (day % 9 === 0) await pay(devnet, 9, 0, 'credit');
    if (day % 2 === 1) await pay(devnet, 1, day % 4 === 1 ? 0 : 1, `Report of day ${day + 1}`);
    if (day % 5 === 2) await refusals(devnet, keys);
    if (day === 11 || day === 27) owed = await payInVain(devnet, `${refusedByRunner} pages, day ${day + 1}`);
    if (day === 13 && owed !== undefined) await refund(site, owed);
    if (day === 19) await revokeLaptop(devnet, keys);
    if (day % 5 === 4) site.onDay(`day ${day + 1} of ${days}`);
  }
}

async function openPerson({
  gateway_url: url,
  demo_user: user,
  payer_private_key: key,
}: DevnetDescription): Promise<Person> {
  const { email, password } = user;
  if (password === undefined) throw new Error('the demo user has no password');
  const person = await signInByPassword(url, { email, password });
  await addWallet(person, key as Hex);
  return person;
}

/** Somebody else, who only chats with the free model. */
async function openStranger({ gateway_url: url }: DevnetDescription): Promise<string> {
  const person = await signInByWallet(url, generatePrivateKey());
  const { key } = (await person.post('/api/keys', { name: 'first steps' })) as { key: string };
  return key;
}

async function makeKeys(person: Person): Promise<Keys> {
  const make = async (body: object) => (await person.post('/api/keys', body)) as { id: number; key: string };
  const website = await make({ name: 'Website', budget: { amount: '5', period: 'month' } });
  const reports = await make({
    name: 'Nightly reports',
    models: ['devnet-large'],
    budget: { amount: '0.10', period: 'day' },
  });
  const laptop = await make({ name: 'Old laptop' });
  return { website: website.key, reports: reports.key, laptop: laptop.key, laptopId: laptop.id };
}

async function revokeLaptop(
  { gateway_url: url, demo_user: user }: DevnetDescription,
  { laptopId }: Keys,
): Promise<void> {
  const person = await signInByPassword(url, { email: user.email, password: user.password ?? '' });
  await person.delete(`/api/keys/${laptopId}`);
}

function bearer(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}` };
}

/** A system message that its model has cached, a question, and how many words are to be answered. */
function ask(model: string, text: string, words: number, systemWords = 0): object {
  const system =
    systemWords > 0 ? [{ role: 'system', content: 'You help customers. '.repeat(systemWords / 3) }] : [];
  return { model, messages: [...system, { role: 'user', content: `${text} words:${words}` }] };
}

/** Requests of the three keys, some of them as streams; every twentieth finds a model that fails. */
async function chats(
  { gateway_url: url }: DevnetDescription,
  keys: Keys,
  random: () => number,
  day: number,
  count: number,
): Promise<void> {
  const wanted = Array.from({ length: Math.ceil(count * (0.5 + random()) * (1 + day / 20)) }, () => {
    const share = random();
    const key = share < 0.6 ? keys.website : share < 0.85 || day >= 19 ? keys.reports : keys.laptop;
    const model = key === keys.reports || random() < 0.5 ? 'devnet-large' : 'devnet-small';
    const fails = random() < 0.05 ? ' fault:status_500' : '';
    const body = ask(
      model,
      `Question of day ${day + 1}${fails}`,
      20 + Math.floor(random() * 400),
      Math.floor(random() * 900),
    );
    return { key, body: { ...body, stream: random() < 0.4 } };
  });
  const send = async ({ key, body }: (typeof wanted)[number]): Promise<void> => {
    const headers = { ...bearer(key), 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    await (await fetch(`${url}/v1/chat/completions`, init)).text();
  };
  for (const some of chunksOf(wanted, atOnce)) await Promise.all(some.map(send));
}

async function pay(devnet: DevnetDescription, serviceId: number, jobIndex: number, body: string) {
  const { gateway_url: gatewayUrl, payer_private_key: key } = devnet;
  return payForOneJob({ gatewayUrl, privateKey: key as Hex, serviceId, jobIndex, body });
}

/** Pays for a call that its runner refuses; returns the digest of the payment's quote. */
async function payInVain(devnet: DevnetDescription, body: string): Promise<Hex | undefined> {
  let digest: Hex | undefined;
  const { gateway_url: gatewayUrl, payer_private_key: key } = devnet;
  const onStep = (step: string): void =>
    void (digest = (/receipt (0x[0-9a-f]{64})/.exec(step)?.[1] as Hex | undefined) ?? digest);
  const paid = payForOneJob({ gatewayUrl, privateKey: key as Hex, serviceId: 1, jobIndex: 0, body, onStep });
  const isDead = await paid.then(
    () => false,
    (error: unknown) => error instanceof Error && error.message.includes('dead_lettered'),
  );
  if (!isDead) throw new Error('the call that its runner refuses is not a dead letter');
  return digest;
}

/** What a gateway refuses: no payment, a job that is not sold, an unknown model, an invalid key. */
async function refusals({ gateway_url: url }: DevnetDescription, { reports }: Keys): Promise<void> {
  const post = (path: string, headers: Record<string, string> = {}, body: object = {}) =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  await post('/x402/jobs/1/0');
  await post('/x402/jobs/1/2');
  await post('/v1/chat/completions', bearer(reports), ask('devnet-small', 'not for this key', 1));
  await post('/v1/chat/completions', bearer('sk-net-unknown'), ask('devnet-large', 'hello', 1));
}

/** The operator sends the amount back and records it. */
async function refund({ devnet, recordRefund }: DemoSite, digest: Hex): Promise<void> {
  const chain = { url: devnet.rpc_url, chainId: devnet.chain_id };
  const receipt = (await call(devnet.gateway_url, 'GET', `/x402/receipts/${digest}`)) as {
    payment: { amount: string; asset: Hex };
  };
  const amountAtoms = BigInt(receipt.payment.amount);
  const to = devnetAddress('payer');
  const transaction = await transfer(chain, receipt.payment.asset, devnetKeys.payTo, { to, amountAtoms });
  await recordRefund(digest, transaction);
}
