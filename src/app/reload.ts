import type { Config } from '../base/config/config.ts';
import { reloadConfig } from '../base/config/reload.ts';
import type { Lane } from '../ledger/store/lane.ts';
import type { RunningFeature } from './feature.ts';

const stream = 'operator:config';

/**
 * Puts the reloadable keys of a configuration in force in all features, all or nothing.
 * Returns the TOML names of changed keys that require a restart.
 * @param started the configuration that the process began with
 * @throws where a feature would be switched off
 */
export async function reloadFeatures(
  lane: Lane,
  started: Config,
  features: readonly RunningFeature[],
  next: Config,
): Promise<readonly string[]> {
  const { config, requireRestart } = reloadConfig(started, next);
  const reloads = features.flatMap((feature) => feature.prepareReload?.(config) ?? []);
  for (const reload of reloads) await reload.record?.();
  // recorded first: a configuration that cannot be recorded does not come into force
  const recorded = reloads.flatMap(({ events = [] }) => events);
  if (recorded.length > 0) await lane.append({ stream, events: recorded });
  for (const reload of reloads) reload.putInForce();
  return requireRestart;
}

/** Records that a configuration was refused; nothing changes. */
export async function recordRefusedReload(lane: Lane, mistakes: number): Promise<void> {
  await lane.append({ stream, events: [{ type: 'operator_config_refused', data: { mistakes } }] });
}
