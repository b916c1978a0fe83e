import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { z } from 'zod';
import { createBrowser, signInByWallet } from '../support/identity.ts';
import { type ClientParts, timeLimit } from './client.ts';
import { complete } from './completions.ts';
import type { Random } from './random.ts';
import type { CreditAccount } from './records.ts';
import { fund, pay, type RunningScenario, sign } from './scenario-parts.ts';
import { pause } from './until.ts';

/** Credit is there soon after its payment is proven; a client does not wait for ever. */
const creditWithinMs = 15_000;
const completionsPerBuyer = 3;
const rivals = 4;
const madeKey = z.object({ key: z.string() });
const credits = z.object({ balance: z.string() });

/** Buys credit over x402 with its own wallet, signs in with it, makes an API key, and asks for completions. */
export async function buyCreditAndAsk(running: RunningScenario): Promise<void> {
  const { parts, random } = running;
  const wallet = privateKeyToAccount(random.hex32());
  const signed = await sign(running, wallet);
  if (!signed) return;
  await fund(running, wallet, signed);
  if ((await pay(running, signed)) !== 'accepted') return;
  const untilMs = performance.now() + creditWithinMs;
  const key = await makeKey(parts, random, wallet, untilMs);
  if (key === undefined) return;
  const account = { key, wallet: wallet.address.toLowerCase() };
  if (!(await isCredited(parts, random, account, untilMs))) return;
  for (let count = 0; count < completionsPerBuyer; count++) await spendCredit(running, account, random);
}

/** Several completions at once, with credit for one at a time. */
export async function askAtOnce(running: RunningScenario): Promise<void> {
  const { parts, scenario, random } = running;
  const account = parts.prepared.get(scenario.id)?.account;
  if (!account) return;
  for (let round = 0; round < 2; round++)
    await Promise.all(
      Array.from({ length: rivals }, (_, rival) =>
        spendCredit(running, account, random.fork(`${round}/${rival}`)),
      ),
    );
}

async function spendCredit(
  { parts, scenario }: RunningScenario,
  account: CreditAccount,
  random: Random,
): Promise<void> {
  const leavesAfterMs = random.chance(0.25) ? random.between(10, 500) : undefined;
  const of = { scenario: scenario.id, means: { kind: 'credit', account } } as const;
  // each repetition may be charged: nothing tells the gateway that it is one
  await complete(parts, random, of, { leavesAfterMs, isStream: random.chance(0.6), maxSilent: 3 });
}

/** An API key of the wallet's user; undefined if no gateway makes one in time. */
async function makeKey(
  { urls, deadline }: ClientParts,
  random: Random,
  wallet: PrivateKeyAccount,
  untilMs: number,
): Promise<string | undefined> {
  while (!deadline.aborted && performance.now() < untilMs) {
    try {
      const browser = createBrowser(random.pick(urls), addressOf(random));
      const { status } = await signInByWallet(browser, wallet);
      const made = status === 200 ? await browser.post('/api/keys', { name: 'of the chaos' }) : undefined;
      const read = madeKey.safeParse(made?.json);
      if (read.success) return read.data.key;
    } catch {
      // the gateway was killed
    }
    await pause(random.between(80, 300), deadline);
  }
  return undefined;
}

/** Its own client address: attempts to sign in are counted by it. */
function addressOf(random: Random): string {
  return `198.51.${random.between(0, 255)}.${random.between(1, 254)}`;
}

async function isCredited(
  { urls, deadline }: ClientParts,
  random: Random,
  { key }: CreditAccount,
  untilMs: number,
): Promise<boolean> {
  while (!deadline.aborted && performance.now() < untilMs) {
    try {
      const headers = { authorization: `Bearer ${key}` };
      const signal = timeLimit(3_000, deadline);
      const response = await fetch(`${random.pick(urls)}/v1/credits`, { headers, signal });
      const read = credits.safeParse(await response.json());
      if (read.success && Number(read.data.balance) > 0) return true;
    } catch {
      // the gateway was killed
    }
    await pause(150, deadline);
  }
  return false;
}
