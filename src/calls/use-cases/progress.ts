import { lastWords } from '../../base/values/last-words.ts';
import type { Config, RunnerConfig } from '../../base/config/config.ts';
import { progressToken } from '../../base/values/progress-token.ts';
import { areEqualSecrets } from '../../base/values/equal-secrets.ts';
import { type CallProgress, reportProgress } from '../store/call-progress.ts';
import type pg from 'pg';
import type { LeaseName } from '../store/calls.ts';

/** The runner for whose lease this token was made, of those that do not lease their calls; undefined if it was made for none. */
export function runnerOfLease(
  { runners }: Pick<Config, 'runners'>,
  lease: LeaseName,
  token: string,
): RunnerConfig | undefined {
  return runners.find(
    ({ mode, tokens }) =>
      mode !== 'lease' && tokens.some((secret) => areEqualSecrets(token, progressToken(secret, lease))),
  );
}

const everyMs = 500;
const maxLeases = 10_000;

/** Takes what runners say of their calls, a few times a second for each: the rest is passed over, without the database. */
export function createProgressDesk(now: () => number = Date.now) {
  /** When each runner reported of a lease last, the oldest first: another's reports, of a lease that it does not hold, are its own. */
  const reportedAt = new Map<string, number>();
  return {
    async report(
      { pool }: { readonly pool: pg.Pool },
      runner: Pick<RunnerConfig, 'name' | 'tokens' | 'services'>,
      lease: LeaseName,
      { fraction, message }: Pick<CallProgress, 'fraction' | 'message'>,
    ): Promise<{ readonly kind: 'reported' | 'skipped' | 'lease_lost' }> {
      const key = `${runner.name}/${lease.callId}/${lease.leaseId}`;
      const at = now();
      if (at - (reportedAt.get(key) ?? 0) < everyMs) return { kind: 'skipped' };
      reportedAt.delete(key);
      reportedAt.set(key, at);
      for (const [oldest, since] of reportedAt) {
        if (reportedAt.size <= maxLeases && at - since < everyMs) break;
        reportedAt.delete(oldest);
      }
      const said = message === undefined ? undefined : lastWords(message, runner.tokens);
      const isHeld = await reportProgress(pool, lease, runner.services, { fraction, message: said });
      return { kind: isHeld ? 'reported' : 'lease_lost' };
    },
  };
}
