import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { startGuarded } from '../../src/devnet/guarded-process.ts';
import { freePort } from '../../src/devnet/ports.ts';
import type { Rig } from '../chaos/rig.ts';
import { mustHold } from '../chaos/until.ts';

/** An alert that is pending or firing. */
export interface ActiveAlert {
  readonly name: string;
  readonly state: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface Prometheus {
  /** What its API says now. */
  alerts(): Promise<readonly ActiveAlert[]>;
  /** The value of an expression that has one; undefined if it has none. */
  ask(expression: string): Promise<number | undefined>;
}

const startMs = 60_000;
const alertsAnswer = z.object({
  data: z.object({
    alerts: z.array(z.object({ state: z.string(), labels: z.record(z.string(), z.string()) })),
  }),
});
const queryAnswer = z.object({
  data: z.object({ result: z.array(z.object({ value: z.tuple([z.number(), z.string()]) })) }),
});

/** Debian's Prometheus, which scrapes these addresses every second as the job `tollbook` and evaluates the rules as often. */
export async function startPrometheus(
  rig: Rig,
  { targets, rules }: { readonly targets: readonly string[]; readonly rules: string },
): Promise<Prometheus> {
  const dir = path.join(rig.dir, 'prometheus');
  mkdirSync(dir, { recursive: true });
  writeFileSync(path.join(dir, 'rules.yml'), rules);
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: ['rules.yml'],
    scrape_configs: [{ job_name: 'tollbook', static_configs: [{ targets }] }],
  };
  // JSON is YAML
  const configFile = path.join(dir, 'prometheus.yml');
  writeFileSync(configFile, JSON.stringify(config));
  const address = `127.0.0.1:${await freePort()}`;
  const server = await startGuarded({
    command: 'prometheus',
    args: [
      `--config.file=${configFile}`,
      `--storage.tsdb.path=${path.join(dir, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=warn',
    ],
    stopSignal: 'TERM',
  });
  rig.defer(() => server.stop());
  const get = async (where: string): Promise<unknown> => {
    const response = await fetch(`http://${address}${where}`, { signal: AbortSignal.timeout(5_000) });
    if (!response.ok) throw new Error(`Prometheus answered ${response.status}: ${await response.text()}`);
    return response.json();
  };
  await mustHold('Prometheus answers', startMs, () => {
    if (server.hasExited()) throw new Error(`Prometheus did not start: ${server.log()}`);
    return get('/api/v1/alerts').then(
      () => true,
      () => false,
    );
  });
  return {
    async alerts() {
      const { data } = alertsAnswer.parse(await get('/api/v1/alerts'));
      return data.alerts.map(({ state, labels }) => ({ state, labels, name: labels['alertname'] ?? '' }));
    },
    async ask(expression) {
      const { data } = queryAnswer.parse(await get(`/api/v1/query?query=${encodeURIComponent(expression)}`));
      const [first] = data.result;
      return first && Number(first.value[1]);
    },
  };
}
