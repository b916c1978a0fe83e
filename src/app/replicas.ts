import type { AlertCondition } from '../base/values/alert-condition.ts';
import { primaryOnly, openReplicas, type ReplicaReads } from '../ledger/use-cases/replicas.ts';
import type { Loop } from '../ledger/workers/loop.ts';
import { startReplicaWatch } from '../ledger/workers/replica-watch.ts';
import type { RunningFeature } from './feature.ts';
import { replicaFigures } from './metric-values.ts';

/** A replica that is not used for longer needs a person; one that is restarted does not. */
const unusedMs = 10_000;

/** The read replicas, where there are some: what reads them, and the part that watches them. */
export async function composeReplicas(
  options: Parameters<typeof openReplicas>[0],
): Promise<{ readonly reads: ReplicaReads; readonly features: readonly RunningFeature[] }> {
  if (options.urls.length === 0) return { reads: primaryOnly, features: [] };
  const replicas = openReplicas(options);
  await replicas.look();
  const loops: Loop[] = [];
  const feature: RunningFeature = {
    startOwnLoops: () => void loops.push(startReplicaWatch(replicas, options.log)),
    figures: () => replicaFigures(() => replicas.all()),
    status() {
      const all = replicas.all();
      const unused = all.filter(({ state }) => state.kind === 'unfit');
      const each = all.map(({ name, state, since }) => {
        const { seq, behindMs } = state.kind === 'fit' ? state : {};
        const check = state.kind === 'fit' ? { ok: true } : { ok: false, detail: state.detail };
        return [
          name,
          { ...check, since, ...(seq !== undefined && { seq, behind_ms: behindMs ?? 0 }) },
        ] as const;
      });
      const detail = unused.length > 0 && { detail: 'the primary answers what these replicas would' };
      return {
        replicas: {
          status: unused.length === 0 ? 'ok' : 'degraded',
          ...detail,
          servers: Object.fromEntries(each),
        },
      };
    },
    conditions: async () =>
      replicas.all().flatMap(({ name, state, since }): AlertCondition[] => {
        const isNew = Date.now() - Date.parse(since) < unusedMs;
        if (state.kind === 'fit' || state.fault === 'unknown' || isNew) return [];
        const text = `The replica ${name} is not used: ${state.detail}. The primary answers what it would, so its load is higher.`;
        return [{ kind: 'replica_unused', subject: name, text, details: { fault: state.fault } }];
      }),
    async finish() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
    stop: () => replicas.close(),
  };
  return { reads: replicas, features: [feature] };
}
