import type { WaitingCalls } from '../store/calls.ts';

export type RunnerSilence = ReturnType<typeof createRunnerSilence>;

/**
 * For how long the runners of a service have taken nothing, although calls wait for them. Runners take the oldest call first: while the same call stays the oldest, and none is leased, they take nothing. A process that
 * starts counts from when the call was due.
 * @param nowMs a monotonic clock
 */
export function createRunnerSilence(nowMs: () => number = () => performance.now()) {
  let heads: ReadonlyMap<number, { readonly callId: number; readonly sinceMs: number }> | undefined;
  return {
    /** Takes what a background check has read. */
    observe(waiting: readonly WaitingCalls[]): void {
      const before = heads;
      const silent = waiting.filter(({ isLeased }) => !isLeased);
      heads = new Map(
        silent.map(({ serviceId, oldestCallId: callId, oldestMs }) => {
          const known = before?.get(serviceId);
          const startMs = before ? nowMs() : nowMs() - oldestMs;
          return [serviceId, known?.callId === callId ? known : { callId, sinceMs: startMs }];
        }),
      );
    },
    /** Whole seconds; 0 while no call of the service waits or a runner works on one. */
    secsOf(serviceId: number): number {
      const head = heads?.get(serviceId);
      return head ? Math.floor((nowMs() - head.sinceMs) / 1_000) : 0;
    },
  };
}

/** Whether a job must not be sold now: it has no runner, or its policy bounds the silence of its runners. 0 means no bound. */
export function isRunnerAway(
  silence: RunnerSilence,
  job: {
    readonly serviceId: number;
    readonly hasRunner: boolean;
    readonly maxRunnerSilenceSecs: number;
  },
): boolean {
  if (!job.hasRunner) return true;
  return job.maxRunnerSilenceSecs > 0 && silence.secsOf(job.serviceId) >= job.maxRunnerSilenceSecs;
}
