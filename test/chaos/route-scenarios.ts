import type { JobRequest } from './client.ts';
import type { Random } from './random.ts';
import { longestKeptBytes } from './route-config.ts';
import { type SaidPrice, saidPrices } from './route-upstream.ts';
import { pay, payerOf, type RunningScenario, sign } from './scenario-parts.ts';
import { jobs, routeJobs, type Scenario } from './schedule.ts';

/** Up to it an answer of a known length is on record before its first byte is sent. */
const smallBytes = 65_536;
/** Answers are small, stored and streamed, or too long to be stored. */
const sizes = [
  [50, 3_000],
  [50, 3_000],
  [smallBytes, longestKeptBytes],
  [longestKeptBytes + 1, 2 * longestKeptBytes],
] as const;
const sometimesAbsent = 0.15;
const prices = Object.keys(saidPrices) as readonly SaidPrice[];

/** A request for something of its own on the path of a route. */
export function routeRequest(
  { id, job }: Pick<Scenario, 'id' | 'job'>,
  body: string,
  random: Random,
): JobRequest {
  const isAnsweredFirst = job === 'file' || job === 'metered';
  const [least, most] = isAnsweredFirst && random.chance(0.8) ? sizes[0] : random.pick(sizes);
  const size = random.chance(sometimesAbsent) ? 'absent' : random.between(least, most);
  const isUsable = random.chance(0.7);
  const price = isUsable ? random.pick(['all', 'some', 'some', 'least'] as const) : random.pick(prices);
  const said = job === 'metered' ? `-${price}-${random.pick(['head', 'end'] as const)}` : '';
  const path = `${jobs[job].path}/${id}-${random.hex32().slice(2, 10)}${said}-${size}`;
  return job === 'order' ? { path, body, headers: {} } : { method: 'GET', path, body: '', headers: {} };
}

/** The same with another name, or on the path of another route. */
export function otherRouteRequest(request: JobRequest, random: Random): JobRequest {
  const [, , name = ''] = request.path.split('/');
  const job = random.pick(routeJobs);
  return routeRequest({ id: `other-${name.split('-')[0]}`, job }, request.body, random);
}

/** Leaves in the middle, some times, and sends the same payment again. */
export async function leaveAndReturn(running: RunningScenario): Promise<void> {
  const signed = await sign(running, payerOf(running));
  if (signed) await pay(running, signed, running.random, running.random.between(1, 4));
}
