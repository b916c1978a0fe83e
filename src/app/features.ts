import type { ChatConfig, IdentityConfig } from '../config/config.ts';
import type { JobsContext } from '../jobs/context.ts';
import { composeAlerts } from './alerts.ts';
import { composeBooks } from './books.ts';
import type { FeatureParts, RunningFeature } from './feature.ts';
import { composeLog } from './log.ts';
import { composeRetention } from './retention.ts';

/** The features that are switched on. One that is not is not imported, and its paths are 404. */
export async function* composeFeatures(parts: FeatureParts): AsyncGenerator<RunningFeature> {
  const { jobs, chat, identity, topUps } = parts.config;
  const paid = jobs && (await (await import('./jobs.ts')).composeJobs({ ...parts, settings: jobs }));
  if (paid) {
    yield paid;
    yield (await import('./triggers.ts')).composeTriggers(parts, paid.current);
    if (parts.config.triggers.some(({ kind }) => kind !== 'webhook'))
      yield (await import('./followed-triggers.ts')).composeFollowedTriggers(parts, paid.current);
  }
  if (chat) yield* composeChatFeatures({ ...parts, settings: chat }, identity, paid?.current);
  if (jobs && chat && topUps.length > 0)
    yield (await import('./top-ups.ts')).composeTopUps({ ...parts, jobs, chat });
}

async function* composeChatFeatures(
  parts: FeatureParts & { readonly settings: ChatConfig },
  settings: IdentityConfig | undefined,
  jobs: (() => JobsContext) | undefined,
): AsyncGenerator<RunningFeature> {
  const { composeChat } = await import('./chat.ts');
  if (!settings) return yield await composeChat(parts, undefined);
  const { composeIdentity, createIdentity } = await import('./identity.ts');
  let inForce = settings;
  const identity = createIdentity(parts, () => inForce);
  const chat = await composeChat(parts, identity);
  yield chat;
  const people = composeIdentity(identity, (next) => (inForce = next), chat.current);
  yield people;
  const { pages } = parts.config;
  if (!pages) return;
  const { composePages } = await import('./pages.ts');
  const { current, completions } = chat;
  const { auth } = people;
  yield await composePages(parts, { settings: pages, identity, auth, chat: current, completions, jobs });
}

/**
 * The parts that every gateway has: the log, where it is configured, the books, and the alerts.
 * @param features what the alerts are about, beside these parts
 * @throws ForgottenHistoryError where an anchor has a newer checkpoint than this database
 */
export async function composeRecorders(
  parts: Pick<FeatureParts, 'config' | 'ledger' | 'logger'>,
  features: () => readonly RunningFeature[],
): Promise<readonly RunningFeature[]> {
  const { log } = parts.config;
  const books = [composeBooks(parts), composeRetention(parts)];
  const recorders = [...(log ? [await composeLog(parts, log)] : []), ...books];
  return [...recorders, composeAlerts(parts, () => [...features(), ...recorders])];
}
