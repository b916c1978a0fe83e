import { setTimeout as sleep } from 'node:timers/promises';
import { mustHold } from '../chaos/until.ts';
import type { Cluster } from './cluster.ts';
import type { Load } from './load.ts';
import type { Node } from './node.ts';

export type FaultKind =
  /** SIGKILL to the primary's PostgreSQL and Patroni at once, as when the node loses power; it starts again after the failover. */
  | 'kill'
  /** SIGKILL only to the primary's postmaster. */
  | 'crash'
  /** SIGSTOP to all processes of the primary until another node is: it does not answer, and later continues. */
  | 'freeze'
  /** `kill`, of the synchronous standby. */
  | 'standby';

export interface FaultReport {
  readonly kind: FaultKind;
  /** The node that was struck. */
  readonly from: string;
  /** The next primary. */
  readonly to: string;
  /** From the fault until Patroni shows the next primary; undefined if the primary was not struck. */
  readonly promotedMs: number | undefined;
  /** From then until both gateways had answered 202; for a standby, the longest time without a 202 from one of them. */
  readonly resumedMs: number;
}

const limitsMs = { failover: 90_000, resume: 60_000 } as const;
/** For this long the pauses after the loss of a standby are looked at. */
const standbyMs = 10_000;
const pollMs = 20;

/** One fault: strikes a node, waits for payments, and brings the node back. */
export function strike(kind: FaultKind, cluster: Cluster, load: Load): Promise<FaultReport> {
  return kind === 'standby' ? strikeStandby(cluster, load) : strikePrimary(kind, cluster, load);
}

async function strikePrimary(
  kind: Exclude<FaultKind, 'standby'>,
  { nodes }: Cluster,
  load: Load,
): Promise<FaultReport> {
  const old = await nodeThat(nodes, '/primary');
  const others = nodes.filter((node) => node !== old);
  const struckAt = Date.now();
  if (kind === 'kill') await old.kill();
  else if (kind === 'crash') old.crash();
  else old.freeze();
  const promoted = await nodeThat(others, '/primary');
  const promotedAt = Date.now();
  await untilAccepted(load, promotedAt);
  const resumedAt = Math.max(...load.acceptedAfter(promotedAt).map((time) => time ?? 0));
  if (kind === 'kill') await old.start();
  if (kind === 'freeze') old.thaw();
  const times = { promotedMs: promotedAt - struckAt, resumedMs: resumedAt - promotedAt };
  return { kind, from: old.name, to: promoted.name, ...times };
}

async function strikeStandby({ nodes }: Cluster, load: Load): Promise<FaultReport> {
  const primary = await nodeThat(nodes, '/primary');
  const standby = await nodeThat(nodes, '/synchronous');
  const struckAt = Date.now();
  await standby.kill();
  await sleep(standbyMs);
  await untilAccepted(load, struckAt + standbyMs);
  const resumedMs = load.longestPauseMs(struckAt, Date.now());
  await standby.start();
  return { kind: 'standby', from: standby.name, to: primary.name, promotedMs: undefined, resumedMs };
}

async function nodeThat(nodes: readonly Node[], role: '/primary' | '/synchronous'): Promise<Node> {
  let found: Node | undefined;
  const finds = async (): Promise<boolean> => {
    const answers = await Promise.all(nodes.map((node) => node.answers(role)));
    found = nodes[answers.indexOf(true)];
    return found !== undefined;
  };
  // a busy machine may be late with an answer
  await mustHold(
    `one of ${nodes.map(({ name }) => name).join(', ')} is ${role}`,
    limitsMs.failover,
    finds,
    pollMs,
  );
  if (!found) throw new Error(`no node is ${role}`);
  return found;
}

function untilAccepted(load: Load, since: number): Promise<void> {
  const isAccepted = (): boolean => load.acceptedAfter(since).every((time) => time !== undefined);
  return mustHold('both gateways take payments', limitsMs.resume, isAccepted, pollMs);
}
