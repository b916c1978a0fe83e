import { z } from 'zod';
import { brokerName } from '../values/broker/names.ts';
import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import type { RunnerConfig } from './runners.ts';
import { secret } from './secret-source.ts';
import { readSecret } from './secrets.ts';
import { type ConfigOf, readTable } from './table.ts';
import { brokerUrl } from './urls.ts';
import { wholeNumber } from './values.ts';

export const jetStreamShape = {
  servers: z
    .array(brokerUrl, 'must be an array of URLs')
    .min(1, 'must name at least one server')
    .describe('Some servers of the cluster; they name the others'),
  replicas: wholeNumber(1, 5)
    .refine((count) => count % 2 === 1, 'must be 1, 3 or 5')
    .default(3)
    .describe('How many servers store each message: 1, 3 or 5'),
  credentials: secret.describe("`USER:PASSWORD`, or the seed of a user's NKey"),
} as const;

type Sizes = Constants['jetstream'];

/** The broker from which runners with `mode = "jetstream"` take their calls. */
export interface JetStreamConfig extends ConfigOf<typeof jetStreamShape>, Sizes {
  /** Begins the names of the streams and the subjects. */
  readonly name: string;
  readonly login: BrokerLogin | undefined;
}

/** Of the user of the account. */
export type BrokerLogin =
  | { readonly kind: 'password'; readonly user: string; readonly password: string }
  | { readonly kind: 'nkey'; readonly seed: string };

/** Reads `[jetstream]`; undefined if no runner uses it, or after a report. */
export async function readJetStream(
  raw: unknown,
  reading: Reading,
  runners: readonly RunnerConfig[],
  name = '',
): Promise<JetStreamConfig | undefined> {
  const { report } = reading;
  const users = runners.filter(({ mode }) => mode === 'jetstream');
  for (const user of users)
    if (!brokerName.test(user.name))
      report.mistake(
        ['runners'],
        `"${user.name}" is the name of a subject with mode = "jetstream": use no dot`,
      );
  if (raw === undefined) {
    if (users.length > 0)
      report.mistake(
        ['jetstream'],
        'is missing: a runner has mode = "jetstream", so name the broker\'s servers',
      );
    return undefined;
  }
  const table = readTable(jetStreamShape, raw, ['jetstream'], report);
  if (users.length === 0) report.warning(['jetstream'], 'is not used: no runner has mode = "jetstream"');
  const credentials = await readSecret(table, 'credentials', { minChars: 1 }, reading);
  const login = credentials === undefined ? undefined : readLogin(credentials);
  if (credentials !== undefined && login === undefined && !reading.skippedSecrets)
    report.mistake(
      [...table.at, 'credentials'],
      'names a secret that must be USER:PASSWORD, or the seed of an NKey of a user, which begins with SU',
    );
  return table.whole && { ...reading.constants.jetstream, ...table.whole, name, login };
}

function readLogin(text: string): BrokerLogin | undefined {
  if (/^SU[A-Z2-7]{56}$/.test(text)) return { kind: 'nkey', seed: text };
  const [, user, password] = /^([^:]+):(.+)$/.exec(text) ?? [];
  return user === undefined || password === undefined ? undefined : { kind: 'password', user, password };
}
