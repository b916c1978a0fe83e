import type { IdentityConfig, Config } from '../base/config/config.ts';
import type { JobsContext } from '../jobs/use-cases/context.ts';
import { composeAlerts, composeRetention } from './alerts.ts';
import { composeBooks } from './books.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import { type ChatSale, createChatSale } from './chat-sale.ts';
import { composeLog } from './log.ts';
import { reloadConfig } from '../base/config/reload.ts';
import type { Lane } from '../ledger/store/lane.ts';

/** The features that are switched on. One that is not is not imported, and its paths are 404. */
export async function* composeFeatures(parts: FeatureParts): AsyncGenerator<RunningFeature> {
  const { jobs, chat, identity, topUps } = parts.config;
  const chatSale = createChatSale();
  const paid =
    jobs && (await (await import('./jobs.ts')).composeJobs({ ...parts, settings: jobs, chatSale }));
  if (paid) {
    yield paid;
    if (jobs.routes) yield (await import('./routes.ts')).composeRoutes(parts, jobs.routes, paid.current);
    const { composeFollowedTriggers, composeTriggers } = await import('./triggers.ts');
    yield composeTriggers(parts, paid.current);
    if (parts.config.triggers.some(({ kind }) => kind !== 'webhook'))
      yield composeFollowedTriggers(parts, paid.current);
  }
  yield* composePeople(parts, identity, paid?.current, chatSale);
  if (jobs && chat && topUps.length > 0)
    yield (await import('./top-ups.ts')).composeTopUps({ ...parts, jobs, chat });
}

/** Chat, the accounts of people, and their pages. */
async function* composePeople(
  parts: FeatureParts,
  settings: IdentityConfig | undefined,
  jobs: (() => JobsContext) | undefined,
  chatSale: ChatSale,
): AsyncGenerator<RunningFeature> {
  const { chat: chatSettings, console, pages } = parts.config;
  const { createIdentity, composeIdentity } = settings ? await import('./identity.ts') : {};
  let inForce = settings;
  const identity = settings && (await createIdentity?.(parts, () => inForce ?? settings));
  const chat =
    chatSettings &&
    (await (
      await import('./chat.ts')
    ).composeChat({ ...parts, settings: chatSettings, chatSale, jobs }, identity));
  if (chat) yield chat;
  const people = identity && composeIdentity?.(identity, (next) => (inForce = next), chat?.current);
  if (!identity || !people) return;
  yield people;
  if (!pages && !console) return;
  const { composeAssets, composeConsole, composePages } = await import('./pages.ts');
  const { assets, feature } = await composeAssets();
  yield feature;
  const host = { identity, auth: people.auth, assets, jobs };
  if (pages)
    yield composePages(parts, {
      ...host,
      settings: pages,
      chat: chat?.current,
      completions: chat?.completions,
    });
  if (console) yield composeConsole(parts, { ...host, console, chat: chat?.current });
}

/**
 * The parts that every gateway has: the log, where it is configured, the books, and the alerts.
 * @param features the sources of alerts besides these parts
 * @throws ForgottenHistoryError if an anchor has a newer checkpoint than this database
 */
export async function composeRecorders(
  parts: Pick<FeatureParts, 'config' | 'ledger' | 'reads' | 'logger' | 'readiness'>,
  features: () => readonly RunningFeature[],
): Promise<readonly RunningFeature[]> {
  const { log } = parts.config;
  const books = [composeBooks(parts), composeRetention(parts)];
  const recorders = [...(log ? [await composeLog(parts, log)] : []), ...books];
  return [...recorders, composeAlerts(parts, () => [...features(), ...recorders])];
}

const stream = 'operator:config';

/**
 * Puts the reloadable keys of a configuration in force in all features, all or nothing.
 * Returns the TOML names of changed keys that require a restart.
 * @param started the configuration that the process began with
 * @throws if a feature would be switched off
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
