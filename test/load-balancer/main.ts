/** `npm run load-balancer`: docs/operations/load-balancer.md describes it. */
import { parseArgs } from 'node:util';
import { startEnvironment } from '../chaos/environment.ts';
import { newSeed, runCommand, say, whole } from '../chaos/command-line.ts';
import { createRandom } from '../chaos/random.ts';
import { seconds, withRig } from '../chaos/rig.ts';
import { isInstalled } from '../support/installed.ts';
import { absences, peers } from './judge.ts';
import { type LoadBalancerReport, type PlannedOutage, runLoadBalancer } from './run.ts';

function readOptions() {
  const { values } = parseArgs({
    options: {
      'outage-secs': { type: 'string', default: '6' },
      buyers: { type: 'string', default: '4' },
      seed: { type: 'string' },
      keep: { type: 'boolean', default: false },
    },
  });
  return {
    seed: values.seed ?? newSeed(),
    outageMs: whole('outage-secs', values['outage-secs'], 1, 600) * 1_000,
    buyers: whole('buyers', values.buyers, 1, 50),
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

await runCommand(async () => {
  const { seed, outageMs, buyers, keeps } = readOptions();
  if (!isInstalled('haproxy', '-v')) throw new Error('haproxy is not installed (apt-get install haproxy)');
  say(`seed ${seed}`);
  const random = createRandom(seed);
  return withRig(async (rig) => {
    const environment = await startEnvironment(rig, random.fork('environment'));
    await environment.createDatabase('balanced');
    const report = await runLoadBalancer({
      rig,
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
    return isSound(report);
  });
});
