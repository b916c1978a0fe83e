import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config/config.ts';
import type { RunningFeature } from './feature.ts';
import type { Lane } from '../store/lane.ts';

const stream = 'operator:config';

/**
 * Puts what can be changed of a configuration in force in all features, all or nothing. Returns the keys that have changed
 * as well and want a restart.
 * @param started the configuration that the process began with
 */
export async function reloadFeatures(
  lane: Lane,
  started: Config,
  features: readonly RunningFeature[],
  next: Config,
): Promise<readonly string[]> {
  const reloads = features.map((feature) => feature.prepareReload(next));
  // on record first: what cannot be written down does not come into force
  const events = reloads.flatMap((reload) => reload.events);
  if (events.length > 0) await lane.append({ stream, events });
  for (const reload of reloads) reload.putInForce();
  return [...changedKeys(started, next), ...reloads.flatMap(({ wantsRestart }) => wantsRestart)];
}

/** Writes down that a configuration was refused; nothing changes. */
export async function recordRefusedReload(lane: Lane, mistakes: number): Promise<void> {
  await lane.append({ stream, events: [{ type: 'operator_config_refused', data: { mistakes } }] });
}

/** Of what belongs to no feature, or says which there are. */
function changedKeys(started: Config, next: Config): string[] {
  return Object.entries(started)
    .filter(([key, value]) => isShared(key) && !isDeepStrictEqual(value, Reflect.get(next, key)))
    .map(([key]) => key);
}

function isShared(key: string): boolean {
  return !['file', 'jobs', 'chat'].includes(key);
}
