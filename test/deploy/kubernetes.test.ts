import { execFile, execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { parseConfig } from '../../src/base/config/load.ts';
import { packageEnvironment } from '../support/installed.ts';
import { root } from '../support/pages.ts';
import { temporaryFolder } from '../support/program.ts';
import { eventually } from '../support/wait.ts';
import { type DeployedCommand, startDeployed } from './start-gateway.ts';

const folder = path.join(root, 'deploy/kubernetes');
const read = (file: string): string => readFileSync(path.join(folder, file), 'utf8');
const documents = (file: string): unknown[] =>
  parseAllDocuments(read(file)).map((one): unknown => one.toJS());

const labels = z.record(z.string(), z.string());
const probe = z.object({
  httpGet: z.object({ path: z.string(), port: z.string() }),
  periodSeconds: z.int(),
  failureThreshold: z.int(),
});
const container = z.object({
  args: z.array(z.string()),
  env: z.array(z.object({ name: z.string(), value: z.string() })),
  ports: z.array(z.object({ name: z.string(), containerPort: z.int() })).default([]),
  volumeMounts: z.array(z.object({ name: z.string(), mountPath: z.string() })),
  securityContext: z.unknown(),
  startupProbe: probe.optional(),
  readinessProbe: probe.optional(),
  livenessProbe: probe.optional(),
});
const podTemplate = z.object({
  metadata: z.object({ labels }),
  spec: z.object({
    automountServiceAccountToken: z.literal(false),
    terminationGracePeriodSeconds: z.int().optional(),
    securityContext: z.unknown(),
    containers: z.tuple([container]),
    volumes: z.array(
      z.object({
        name: z.string(),
        secret: z.object({ secretName: z.string() }).optional(),
        configMap: z.object({ name: z.string() }).optional(),
      }),
    ),
  }),
});
type Pod = z.infer<typeof podTemplate>;
const selector = z.object({ matchLabels: labels });

const kustomization = z
  .object({
    namespace: z.string(),
    resources: z.array(z.string()),
    configMapGenerator: z.tuple([z.object({ name: z.string(), files: z.array(z.string()) })]),
    images: z.tuple([z.object({ name: z.string(), newTag: z.string() })]),
  })
  .parse(documents('kustomization.yaml')[0]);
const secrets = documents('secrets.example.yaml').map((secret) =>
  z
    .object({ metadata: z.object({ name: z.string(), namespace: z.string() }), stringData: labels })
    .parse(secret),
);

const deployment = z
  .object({ spec: z.object({ replicas: z.int(), selector, template: podTemplate }) })
  .parse(documents('gateway.yaml')[0]).spec;
const job = z.object({ spec: z.object({ template: podTemplate }) }).parse(documents('migrate.yaml')[0]).spec;
const gatewayLabels = deployment.template.metadata.labels;

/** The command of a pod's container; its secrets are below the place where their volume is mounted. */
function commandOf({ spec }: Pod): DeployedCommand & { readonly secretName: string | undefined } {
  const [{ args, env, volumeMounts }] = spec.containers;
  const volume = spec.volumes.find(({ secret }) => secret);
  const mount = volumeMounts.find(({ name }) => name === volume?.name);
  return {
    args,
    env: Object.fromEntries(env.map(({ name, value }) => [name, value])),
    secretsAt: mount?.mountPath ?? '',
    secretName: volume?.secret?.secretName,
  };
}

test("every manifest is of Kubernetes' own types, without a key that these do not have", async () => {
  const types: Readonly<Record<string, string>> = {
    'v1 Namespace': 'core/v1',
    'v1 Secret': 'core/v1',
    'v1 Service': 'core/v1',
    'apps/v1 Deployment': 'apps/v1',
    'batch/v1 Job': 'batch/v1',
    'policy/v1 PodDisruptionBudget': 'policy/v1',
    'networking.k8s.io/v1 NetworkPolicy': 'networking/v1',
  };
  const files = [...kustomization.resources, 'secrets.example.yaml'];
  const lines = files.flatMap(documents).map((manifest, n) => {
    const { apiVersion, kind } = z.object({ apiVersion: z.string(), kind: z.string() }).parse(manifest);
    const from = types[`${apiVersion} ${kind}`];
    return `import type { ${kind} as Kind${n} } from 'kubernetes-types/${from}';
export const manifest${n}: Kind${n} = ${JSON.stringify(manifest)};`;
  });
  const place = temporaryFolder();
  symlinkSync(path.join(root, 'node_modules'), path.join(place, 'node_modules'));
  writeFileSync(path.join(place, 'manifests.ts'), lines.join('\n'));
  const compile = promisify(execFile)(
    path.join(root, 'node_modules/.bin/tsc'),
    [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--module',
      'esnext',
      '--moduleResolution',
      'bundler',
      'manifests.ts',
    ],
    { cwd: place },
  );
  const { stdout } = await compile.catch((error: { stdout: string }) => error);
  expect(stdout).toBe('');
});

test('kustomization.yaml has every manifest but the secrets, the configuration and the version of this repository', () => {
  const [config] = kustomization.configMapGenerator;
  const named = [...kustomization.resources, ...config.files, 'kustomization.yaml', 'secrets.example.yaml'];
  expect(
    readdirSync(folder)
      .filter((file) => file !== 'secrets.yaml')
      .toSorted(),
  ).toEqual(named.toSorted());
  const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    version: string;
  };
  expect(kustomization.images[0]).toMatchObject({ name: 'tollbook', newTag: version });
  const mounted = deployment.template.spec.volumes.flatMap(({ configMap }) => configMap?.name ?? []);
  expect(mounted).toEqual([config.name]);
});

test.skipIf(!isInstalledKubectl())(
  'kustomize builds the manifests (skipped where kubectl is missing)',
  () => {
    const built = execFileSync('kubectl', ['kustomize', folder], {
      encoding: 'utf8',
      env: packageEnvironment(),
    });
    const manifests = parseAllDocuments(built).map(
      (one) => one.toJS() as { kind: string; metadata: { name: string } },
    );
    const kinds = [...kustomization.resources.flatMap(documents), { kind: 'ConfigMap' }];
    expect(manifests.map(({ kind }) => kind).toSorted()).toEqual(
      kinds.map((one) => (one as { kind: string }).kind).toSorted(),
    );
    const config = manifests.find(({ kind }) => kind === 'ConfigMap')?.metadata.name;
    expect(config).toMatch(/^tollbook-config-\w+$/);
    expect(built.split(`name: ${config}\n`)).toHaveLength(3);
    expect(built).not.toMatch(/image: tollbook$/m);
  },
);

function isInstalledKubectl(): boolean {
  try {
    execFileSync('kubectl', ['version', '--client'], { stdio: 'ignore', env: packageEnvironment() });
    return true;
  } catch {
    return false;
  }
}

test('selectors lead to the pods of the gateway, and ports to its ports', async () => {
  const service = z
    .object({ spec: z.object({ selector: labels, ports: z.array(z.object({ targetPort: z.string() })) }) })
    .parse(documents('service.yaml')[0]).spec;
  const budget = z
    .object({ spec: z.object({ minAvailable: z.int(), selector }) })
    .parse(documents('disruption-budget.yaml')[0]).spec;
  const policy = z
    .object({
      spec: z.object({
        podSelector: selector,
        ingress: z.array(z.object({ ports: z.array(z.object({ port: z.string() })) })),
      }),
    })
    .parse(documents('network-policy.yaml')[0]).spec;
  for (const selected of [deployment.selector.matchLabels, service.selector, budget.selector.matchLabels])
    expect(selected).toEqual(gatewayLabels);
  for (const pods of [gatewayLabels, job.template.metadata.labels])
    expect(pods).toMatchObject(policy.podSelector.matchLabels);
  expect(job.template.metadata.labels).not.toMatchObject(gatewayLabels);
  // a node can be drained, and never the last gateway
  expect(budget.minAvailable).toBeGreaterThan(0);
  expect(budget.minAvailable).toBeLessThan(deployment.replicas);

  const [{ ports, ...probes }] = deployment.template.spec.containers;
  const names = ports.map(({ name }) => name);
  const named = [
    ...service.ports.map(({ targetPort }) => targetPort),
    ...policy.ingress.flatMap((rule) => rule.ports.map(({ port }) => port)),
    ...[probes.startupProbe, probes.livenessProbe, probes.readinessProbe].map((one) => one?.httpGet.port),
  ];
  for (const name of named) expect(names).toContain(name);
  const { bindAddress, metrics } = await readOwnConfig();
  expect(ports).toEqual([
    { name: 'http', containerPort: bindAddress.port },
    { name: 'metrics', containerPort: metrics?.bindAddress?.port },
  ]);
});

/** The configuration of the manifests, without a warning. */
async function readOwnConfig() {
  const { env } = commandOf(deployment.template);
  const { config, warnings } = await parseConfig(read('tollbook.toml'), {
    file: 'tollbook.toml',
    env,
    readFile: async (file) => `the-secret-in-${file}-of-thirty-two-characters`,
  });
  expect(warnings).toEqual([]);
  return config;
}

test('a gateway is out of the service before it stops to listen, and has the time that a stop takes', async () => {
  const { drainDelaySecs, shutdownGraceSecs } = await readOwnConfig();
  const [{ readinessProbe }] = deployment.template.spec.containers;
  const failsAfterSecs = (readinessProbe?.periodSeconds ?? 0) * (readinessProbe?.failureThreshold ?? 0);
  expect(failsAfterSecs).toBeGreaterThan(0);
  expect(failsAfterSecs).toBeLessThan(drainDelaySecs);
  const graceSecs = deployment.template.spec.terminationGracePeriodSeconds;
  expect(graceSecs).toBeGreaterThan(drainDelaySecs + shutdownGraceSecs);
});

test.each([
  ['gateway', deployment.template],
  ['migrate', job.template],
])('the pod of %s runs without root, and has the secrets that its variables name', (_, pod) => {
  const [{ securityContext }] = pod.spec.containers;
  expect(pod.spec.securityContext).toMatchObject({
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  });
  expect(securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  const { env, secretsAt, secretName } = commandOf(pod);
  const secret = secrets.find(({ metadata }) => metadata.name === secretName);
  expect(secret?.metadata.namespace).toBe(kustomization.namespace);
  const files = Object.keys(secret?.stringData ?? {}).map((key) => [`${key}_FILE`, `${secretsAt}/${key}`]);
  expect(env).toEqual(Object.fromEntries(files));
  const mounts = pod.spec.containers[0].volumeMounts.map(({ name }) => name);
  expect(pod.spec.volumes.map(({ name }) => name).toSorted()).toEqual(mounts.toSorted());
});

test('the commands of the pods migrate and start a gateway, whose probes are answered', async () => {
  const commands = { migrate: commandOf(job.template), gateway: commandOf(deployment.template) };
  const url = await startDeployed(commands, read('tollbook.toml'));
  const [{ startupProbe, livenessProbe, readinessProbe }] = deployment.template.spec.containers;
  for (const one of [startupProbe, livenessProbe, readinessProbe])
    await eventually(async () => expect((await fetch(`${url}${one?.httpGet.path}`)).status).toBe(200));
});
