import type { Config } from '../base/config/config.ts';
import { ConfigError, formatMistake } from '../base/config/mistakes.ts';
import { backOffMs } from '../base/values/back-off.ts';
import type { OperatorLog } from '../base/values/operator-log.ts';
import { type Loop, startLoop } from '../ledger/workers/loop.ts';
import { askChains, type ConfigFindings } from './chain-facts.ts';
import { located } from './chain-findings.ts';
import type { FeatureStatus } from '../ledger/http/status.ts';

/** Compares the configuration in force with the chains. */
export interface ChainWatch {
  /**
   * Asks the chains about a configuration before it comes into force. What cannot be asked is logged, and asked again later.
   * Returns the function that puts it in force here.
   * @throws ConfigError with every mistake that a chain shows
   */
  admit(config: Config): Promise<() => void>;
  /** The accepted tokens, as `network/asset`, that a chain has shown to be wrong since. The same set while nothing changes. */
  wrongTokens(): ReadonlySet<string>;
  /** For `/status`. */
  status(): FeatureStatus;
  /** Repeats unanswered questions until they are answered. */
  start(): Loop;
}

const pollMs = 1_000;
const retries = { firstMs: 1_000, longestMs: 60_000 };

export function createChainWatch(started: Config, log: OperatorLog): ChainWatch {
  let inForce = started;
  let mistakes: readonly string[] = [];
  let wrong: ReadonlySet<string> = new Set();
  let isSettled = true;
  let attempt = 0;
  let dueMs = 0;

  const wait = (): void => {
    dueMs = performance.now() + backOffMs(retries, attempt);
    attempt += 1;
  };

  /** A token comes back once its chain agrees with the configuration: an RPC may have been wrong for a time. */
  const apply = (found: ConfigFindings): void => {
    const named = found.mistakes.map((finding) => formatMistake(located(inForce, finding)));
    for (const line of named)
      if (!mistakes.includes(line)) log.error({ mistake: line }, 'a chain contradicts the configuration');
    if (found.wrongTokens.symmetricDifference(wrong).size > 0) {
      log.warn(
        { tokens: [...found.wrongTokens] },
        'payments in these tokens are refused, the others accepted',
      );
      wrong = found.wrongTokens;
    }
    mistakes = named;
    isSettled = found.mistakes.length + found.unanswered.length === 0;
    if (isSettled) log.info({}, 'the chains have answered, and agree with the configuration');
  };

  return {
    async admit(config) {
      const found = await askChains(config);
      if (found.mistakes.length > 0)
        throw new ConfigError(found.mistakes.map((finding) => located(config, finding)));
      for (const finding of [...found.unchecked, ...found.unanswered])
        log.warn(
          { warning: formatMistake(located(config, finding)) },
          'a part of the configuration is not compared with its chain',
        );
      return () => {
        inForce = config;
        mistakes = [];
        wrong = new Set();
        isSettled = found.unanswered.length === 0;
        attempt = 0;
        wait();
      };
    },
    wrongTokens: () => wrong,
    status: () => ({
      configuration:
        mistakes.length === 0 ? { status: 'ok' } : { status: 'degraded', detail: mistakes.join('; ') },
    }),
    start: () =>
      startLoop(
        async () => {
          if (isSettled || performance.now() < dueMs) return;
          const asked = inForce;
          const found = await askChains(asked);
          // a reload has asked about another configuration meanwhile
          if (asked !== inForce) return;
          wait();
          apply(found);
        },
        { pollMs, log, failureMessage: 'the chains could not be compared with the configuration' },
      ),
  };
}
