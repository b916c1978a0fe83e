/** `npm run load-balancer`: docs/operations/load-balancer.md describes it. */
import { parseArgs } from 'node:util';
import { startEnvironment } from '../chaos/environment.ts';
import { createRandom } from '../chaos/random.ts';
import { missingOf } from '../ha/installed.ts';
import { absences, peers } from './outages.ts';
import { type LoadBalancerReport, type PlannedOutage, runLoadBalancer, seconds } from './run.ts';

const missing = missingOf(['haproxy']);
const say = (line: string): void => console.log(line);

function readOptions() {
  const { values } = parseArgs({
    options: {
      'outage-secs': { type: 'string', default: '6' },
      buyers: { type: 'string', default: '4' },
      seed: { type: 'string' },
      keep: { type: 'boolean', default: false },
    },
  });
  const whole = (name: 'outage-secs' | 'buyers', most: number): number => {
    const number = Number(values[name]);
    if (!Number.isInteger(number) || number < 1 || number > most)
      throw new Error(`--${name} is a whole number from 1 to ${most}`);
    return number;
  };
  const seed = values.seed ?? String(Date.now() % 1_000_000);
  return {
    seed,
    outageMs: whole('outage-secs', 600) * 1_000,
    buyers: whole('buyers', 50),
    keeps: values.keep,
  };
}

/** Each peer in each way; what is not reached over HTTP can be away in one way only. */
function* everyOutage(ms: number): Generator<PlannedOutage> {
  for (const how of absences)
    for (const peer of peers)
      if (how === 'cut' || (peer !== 'mail' && peer !== 'lease runner')) yield { peer, how, ms };
}

function* summary(report: LoadBalancerReport): Generator<string> {
  const { answers, failures, violations, restarts, servers, payments, poisonPushes, ms } = report;
  for (const [answer, count] of [...answers].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    yield `${String(count).padStart(7)}  ${answer}`;
  for (const { name, requests, errors, retries, downs } of servers)
    yield `${name}: ${requests} requests, ${errors} connection errors or broken answers, ${retries} repeated, out of service ${downs} times`;
  yield `${restarts} restarts, ${poisonPushes} calls pushed to the poison runner`;
  yield `payments: ${payments.signed} signed, ${payments.landed} landed, ${payments.accepted} answered 202, in ${seconds(ms)}`;
  for (const failure of failures.slice(0, 30)) yield `FAILED: ${failure}`;
  for (const { kind, words } of violations.slice(0, 30)) yield `${kind}: ${words}`;
  yield isSound(report)
    ? 'not one honest request failed, no payment lost or doubled'
    : `${failures.length} REQUESTS FAILED, ${violations.length} VIOLATIONS`;
}

const isSound = ({ failures, violations }: LoadBalancerReport): boolean =>
  failures.length === 0 && violations.length === 0;

try {
  const { seed, outageMs, buyers, keeps } = readOptions();
  if (missing.length > 0) throw new Error(`not installed: ${missing.join(', ')} (apt-get install haproxy)`);
  say(`seed ${seed}`);
  const random = createRandom(seed);
  const environment = await startEnvironment(random.fork('environment'));
  try {
    await environment.createDatabase('balanced');
    const report = await runLoadBalancer({
      network: environment,
      databaseUrl: environment.postgres.url('balanced'),
      random,
      restarts: 2,
      outages: [...everyOutage(outageMs)],
      buyers,
      chatters: 2,
      say,
      keeps,
    });
    for (const line of summary(report)) say(line);
    process.exitCode = isSound(report) ? 0 : 1;
  } finally {
    await environment.close();
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 64;
}
