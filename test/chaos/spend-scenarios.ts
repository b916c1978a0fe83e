import { prepaidContractArtifact } from '../../src/devnet/contracts.ts';
import { callAsAnyone } from '../../src/devnet/deploy.ts';
import { prepaidContractAddress } from '../../src/devnet/prepaid-contract.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { spendAuthHash } from '../../src/accounts/rules/spend/spend-auth.ts';
import { signSpend } from '../support/spend.ts';
import { complete, type CompletionOptions } from './completions.ts';
import type { Random } from './random.ts';
import type { Completion, SignedSpend } from './records.ts';
import type { RunningScenario } from './scenario-parts.ts';

/** Of the token, and far more than a completion costs: a spend pays its whole amount. */
const amount = 10_000n;
/** Longer than any step of a clock. */
const validitySecs = 86_400;
const spendsPerClient = 3;

/** Each spend is sent until it has bought its answer, or is refused; then the account's next one. */
export async function spendOneAfterAnother(running: RunningScenario): Promise<void> {
  for (let nonce = 0; nonce < spendsPerClient; nonce++) {
    const spend = await signNext(running, nonce);
    if (!spend || !isBought(await buy(running, spend, running.random))) return;
  }
}

/** The same request several times at once: one of them gets the answer. */
export async function spendAtOnce(running: RunningScenario): Promise<void> {
  const spend = await signNext(running, 0);
  if (!spend) return;
  const secret = secretOf(running.random);
  const same = running.random.hex32();
  await Promise.all(
    [0, 1, 2].map(async (twin) => {
      // the same draws, so that the requests are the same
      await sleep(running.random.fork(`twin ${twin}`).between(0, 200));
      return buy(running, spend, running.random.fork(same), { secret });
    }),
  );
}

/** The payer's request, and that of a stranger who saw the spend, also after it has landed. */
export async function spendForTwo(running: RunningScenario): Promise<void> {
  const { random } = running;
  const spend = await signNext(running, 0);
  if (!spend) return;
  const stranger = random.fork('stranger');
  await Promise.all([
    buy(running, spend, random),
    (async () => {
      for (let times = 0; times < 3; times++) {
        await sleep(stranger.between(0, 700));
        await buy(running, spend, stranger.fork(String(times)), { maxSilent: 3 });
      }
    })(),
  ]);
}

/** A third party lands the spend: before its request, or while that is under way. */
export async function spendFrontRun(running: RunningScenario): Promise<void> {
  const { random } = running;
  const spend = await signNext(running, 0);
  if (!spend) return;
  const isBefore = random.chance(0.3);
  const landing = sleep(isBefore ? 0 : random.between(0, 150)).then(() => land(running, spend));
  if (isBefore) await landing;
  await Promise.all([landing, buy(running, spend, random)]);
}

async function signNext(running: RunningScenario, nonce: number): Promise<SignedSpend | undefined> {
  const { parts, scenario } = running;
  const key = parts.prepared.get(scenario.id)?.spendKey;
  if (key === undefined) return undefined;
  const domain = { chainId: parts.environment.chain.chainId, contract: prepaidContractAddress };
  const expiry = BigInt(Math.floor(Date.now() / 1_000) + validitySecs);
  const auth = await signSpend(domain, key, { amount, nonce: BigInt(nonce), expiry });
  const spend: SignedSpend = { auth, authHash: spendAuthHash(auth), isFrontRun: false };
  parts.records.spends.push(spend);
  return spend;
}

/** A spend is public once it has landed: only the client's secret tells it from others. */
function secretOf(random: Random): string {
  return random.hex32();
}

function buy(
  { parts, scenario }: RunningScenario,
  spend: SignedSpend,
  random: Random,
  { secret = secretOf(random), ...options }: Partial<CompletionOptions> & { secret?: string } = {},
): Promise<Completion> {
  const of = { scenario: scenario.id, means: { kind: 'spend', spend, secret } } as const;
  const leavesAfterMs = random.chance(0.15) ? random.between(10, 600) : undefined;
  return complete(parts, random, of, { leavesAfterMs, isStream: random.chance(0.6), ...options });
}

/** Whether the account's next nonce can be used. */
function isBought({ end }: Completion): boolean {
  return end === 'answered';
}

async function land({ parts }: RunningScenario, spend: SignedSpend): Promise<void> {
  const { auth } = spend;
  const call = {
    address: prepaidContractAddress,
    artifact: prepaidContractArtifact,
    functionName: 'authorizeSpend',
    args: [auth],
  };
  try {
    await parts.gate.send(() => callAsAnyone(parts.environment.chain, call));
    spend.isFrontRun = true;
  } catch {
    // the gateway was faster
  }
}
