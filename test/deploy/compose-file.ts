import { parse } from 'yaml';
import { z } from 'zod';

const texts = z.array(z.string());
const bind = z.strictObject({
  type: z.literal('bind'),
  source: z.string(),
  target: z.string(),
  read_only: z.literal(true),
  // a file that is missing must not become a folder
  bind: z.strictObject({ create_host_path: z.literal(false) }),
});
const healthcheck = z.strictObject({
  test: z.tuple([z.literal('CMD')], z.string()),
  interval: z.string(),
  retries: z.int(),
  start_period: z.string().optional(),
});
const conditions = z.enum(['service_started', 'service_healthy', 'service_completed_successfully']);

/** Strict: Compose refuses keys that it does not know. */
const service = z.strictObject({
  image: z.string().optional(),
  build: z.strictObject({ context: z.literal('.'), target: z.string() }).optional(),
  platform: z.string().optional(),
  user: z.string().optional(),
  init: z.boolean().optional(),
  network_mode: z.string().optional(),
  entrypoint: texts.optional(),
  command: texts.optional(),
  environment: z.record(z.string(), z.string()).default({}),
  volumes: z.array(z.union([z.string(), bind])).default([]),
  tmpfs: texts.default([]),
  ports: texts.default([]),
  healthcheck: healthcheck.optional(),
  depends_on: z
    .record(z.string(), z.strictObject({ condition: conditions, restart: z.boolean().optional() }))
    .default({}),
  read_only: z.boolean().optional(),
  cap_drop: texts.default([]),
  security_opt: texts.default([]),
  stop_grace_period: z.string().optional(),
  restart: z.string(),
});
const file = z.object({
  services: z.record(z.string(), service),
  volumes: z.record(z.string(), z.null()),
});
export type Service = z.infer<typeof service>;

/** With what counts where it is not set or empty. */
const variable = /\$\{(\w+)(?::-([^}]*))?\}/g;

/** The variables that the file takes from the environment, with what counts without them; undefined if Compose would warn. */
export function variablesOf(text: string): ReadonlyMap<string, string | undefined> {
  return new Map([...text.matchAll(variable)].map(([, name = '', fallback]) => [name, fallback]));
}

/** Reads the file as Compose does: variables are put into values, not into the text. */
export function readCompose(text: string, env: Readonly<Record<string, string>>): z.infer<typeof file> {
  const fill = (value: unknown): unknown => {
    if (typeof value === 'string')
      return value.replaceAll(variable, (_, name: string, fallback = '') => env[name] || fallback);
    if (Array.isArray(value)) return value.map(fill);
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fill(inner)]));
  };
  return file.parse(fill(parse(text, { merge: true })));
}

/** The volumes that the file defines, and where the service has each. */
export function mountsOf({ volumes }: Service): { readonly volume: string; readonly target: string }[] {
  return volumes.flatMap((mount) => {
    if (typeof mount !== 'string') return [];
    const [volume = '', target = ''] = mount.split(':');
    return [{ volume, target }];
  });
}

/** The services, each behind those that it depends on. */
export function inOrder(services: Readonly<Record<string, Service>>): readonly string[] {
  const ordered: string[] = [];
  const visit = (name: string): void => {
    if (ordered.includes(name)) return;
    for (const other of Object.keys(services[name]?.depends_on ?? {})) visit(other);
    ordered.push(name);
  };
  for (const name of Object.keys(services)) visit(name);
  return ordered;
}
