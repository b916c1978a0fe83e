/** What a replica and the primary said of themselves, the replica first. */
export interface Compared {
  readonly primary: {
    readonly systemIdentifier: string;
    readonly oid: number;
    readonly timeline: number;
    readonly lsn: number;
    readonly seq: number;
    readonly nowMs: number;
  };
  readonly replica: {
    readonly systemIdentifier: string;
    readonly oid: number;
    readonly timeline: number;
    readonly isStandby: boolean;
    readonly lsn: number | undefined;
    readonly replayedMs: number | undefined;
    readonly seq: number;
    readonly leafHash: string | undefined;
  };
}

type Fault =
  | 'unknown'
  | 'unreachable'
  | 'not_told'
  | 'writable'
  | 'other_ledger'
  | 'other_timeline'
  | 'ahead'
  | 'behind';

/** Whether reads may go to a replica. */
export type ReplicaState =
  | {
      readonly kind: 'fit';
      /** It has every event up to this one. */
      readonly seq: number;
      /** By the primary's clock, in Unix milliseconds: what was committed before it has. */
      readonly asOfMs: number;
      readonly behindMs: number;
    }
  | {
      readonly kind: 'unfit';
      readonly fault: Fault;
      /** One sentence or more without a final full stop, for operators. */
      readonly detail: string;
    };

/** A replica that is further behind is not used. */
const mostBehindMs = 60_000;

export function unfit(fault: Fault, detail: string): ReplicaState {
  return { kind: 'unfit', fault, detail };
}

/** @param primaryHash of the primary's event in the place of the replica's last one; undefined if it has none there */
export function judgeReplica(compared: Compared, primaryHash: string | undefined): ReplicaState {
  const { primary, replica } = compared;
  const wrong = findOtherHistory(compared);
  if (wrong) return wrong;
  const { seq, leafHash } = replica;
  if (seq > 0 && primaryHash === undefined)
    return unfit(
      'ahead',
      `it has event ${seq}, which the primary does not have. If that lasts, it is of a history that was lost: build it anew from the primary`,
    );
  if (leafHash !== primaryHash)
    return unfit(
      'other_ledger',
      `its event ${seq} is another one than the primary's: it is of another ledger, or of a history that was lost. Correct REPLICA_URL, or ` +
        'build it anew from the primary',
    );
  if (hasReached(compared)) return { kind: 'fit', seq, asOfMs: primary.nowMs, behindMs: 0 };
  if (replica.replayedMs === undefined)
    return unfit(
      'behind',
      'it has replayed no commit since its start, so it is not known how far it is behind',
    );
  const behindMs = Math.max(0, Math.round(primary.nowMs - replica.replayedMs));
  if (behindMs > mostBehindMs)
    return unfit(
      'behind',
      `it is ${Math.round(behindMs / 1_000)} s behind, at event ${seq} of ${primary.seq}; ${mostBehindMs / 1_000} s are allowed. Look at its ` +
        'recovery_min_apply_delay, its long queries, and pg_stat_replication of the primary',
    );
  return { kind: 'fit', seq, asOfMs: replica.replayedMs, behindMs };
}

/** Why places in the write-ahead logs of the two servers cannot be compared; undefined if they can. */
export function findOtherHistory({ primary, replica }: Compared): ReplicaState | undefined {
  if (!replica.isStandby || replica.lsn === undefined)
    return unfit(
      'writable',
      'it is no standby: it was promoted, or it is the primary. Let REPLICA_URL lead to a standby of the primary',
    );
  if (replica.systemIdentifier !== primary.systemIdentifier || replica.oid !== primary.oid)
    return unfit('other_ledger', 'it is of another ledger. Let REPLICA_URL lead to a standby of the primary');
  if (replica.timeline !== primary.timeline)
    return unfit(
      'other_timeline',
      `it is on timeline ${replica.timeline}, and the primary is on ${primary.timeline}. After a failover it is used again at the latest from ` +
        'its next restartpoint on (checkpoint_timeout); if it is not, build it anew from the primary',
    );
  return undefined;
}

/** Whether a replica of the same history has everything that the primary has shown anyone. */
export function hasReached(compared: Compared): boolean {
  const { primary, replica } = compared;
  return replica.lsn !== undefined && replica.lsn >= primary.lsn && replica.seq >= primary.seq;
}
