import { readdirSync } from 'node:fs';
import { defineConfig, type OxlintOverride } from 'oxlint';

/**
 * The layers of src/, bottom to top: each directory, and the directories it may import from. ARCHITECTURE.md draws the same
 * list. A directory that is missing here fails the lint run.
 */
const base = ['domain', 'runtime', 'config', 'store', 'peers'];
const useCases = {
  jobs: [...base],
  credit: [...base],
  identity: [...base, 'credit'],
  'top-ups': [...base, 'credit', 'identity'],
  // what the operator's own transactions cost
  costs: [...base],
  spend: [...base, 'costs'],
  chat: [...base, 'credit', 'identity', 'spend'],
  log: [...base],
  projections: [...base, 'log'],
  verify: [...base, 'log', 'projections'],
  reconcile: [...base, 'log', 'verify'],
  refunds: [...base, 'log', 'projections', 'costs'],
  recovery: [...base, 'log', 'projections', 'reconcile'],
  books: [...base, 'log'],
  // closed periods of the books, with the hashes of their reports
  periods: [...base, 'log', 'reconcile', 'books'],
  // what calls jobs without payments: into the same outbox
  triggers: [...base, 'jobs'],
};
const below = [...base, 'metrics', 'traces', ...Object.keys(useCases)];
const mayImport: Readonly<Record<string, readonly string[]>> = {
  domain: [],
  // polling, time limits, promise tracking and background work: every layer above needs them and none owns them
  runtime: ['domain'],
  config: ['domain'],
  store: ['domain', 'runtime'],
  peers: ['domain', 'runtime', 'config'],
  // what the process measures about itself
  metrics: [...base],
  // what happens to its requests, for a collector
  traces: [...base],
  ...useCases,
  workers: below,
  http: below,
  // the customers' pages, beside the API: the same use cases, and what answers a request
  pages: [...below, 'http'],
  // the operators' pages, made of the same parts
  console: [...below, 'http', 'pages'],
  app: [...below, 'workers', 'http', 'pages', 'console'],
  // the local chain, facilitator, runner and PostgreSQL; only demo keys need use cases
  devnet: [...base, 'credit', 'identity'],
  // a service of its own, which needs no ledger: a gateway is handed to it
  pricing: ['domain', 'runtime'],
  cli: [...below, 'workers', 'http', 'app', 'devnet', 'pricing', 'main.ts'],
  // a library of its own for runner authors: it must bring nothing else along
  runner: ['domain', 'runtime'],
  'main.ts': [...below, 'app'],
};
const places = readdirSync('src');
for (const place of places)
  if (!(place in mayImport)) throw new Error(`src/${place} has no place in the layers of oxlint.config.ts`);

interface Restriction {
  readonly group?: string[];
  readonly regex?: string;
  readonly message: string;
  readonly allowTypeImports?: boolean;
}

const sqlOnlyInStore: Restriction = {
  group: ['kysely*', 'pg'],
  allowTypeImports: true,
  message: 'SQL lives only in src/store and migrations',
};
const pure: Restriction = {
  group: ['node:fs', 'node:fs/**', 'node:net', 'node:http*', 'undici', 'fastify', 'pino'],
  message: 'src/domain is pure: no I/O',
};
const noDependencies: Restriction = {
  regex: '^[a-z@][a-z0-9@/._-]*$',
  message: '@tollbook/runner brings no dependencies along',
};
const outside: Readonly<Record<string, readonly Restriction[]>> = {
  domain: [sqlOnlyInStore, pure],
  store: [],
  devnet: [],
  cli: [],
  runner: [noDependencies],
  runtime: [noDependencies, sqlOnlyInStore],
  app: [],
};

/** One override for each depth of a directory, since a restriction compares the import as it is written. */
function boundariesOf(directory: string): OxlintOverride[] {
  const allowed = new Set<string>([directory, ...(mayImport[directory] ?? [])]);
  const forbidden = places.filter((place) => !allowed.has(place));
  return [1, 2, 3].map((depth) => {
    const up = '../'.repeat(depth);
    const layers: Restriction = {
      group: forbidden.map((place) => up + (place.endsWith('.ts') ? place : `${place}/**`)),
      message: `src/${directory} imports only from: ${[...allowed].join(', ')} (oxlint.config.ts)`,
    };
    const patterns = [layers, ...(outside[directory] ?? [sqlOnlyInStore])];
    return {
      files: [`src/${directory}/${'*/'.repeat(depth - 1)}*.ts`],
      rules: { 'typescript/no-restricted-imports': ['error', { patterns }] },
    };
  });
}

export default defineConfig({
  plugins: ['typescript', 'unicorn', 'import', 'promise', 'node', 'vitest', 'oxc'],
  options: { typeAware: true, typeCheck: true },
  categories: { correctness: 'error', suspicious: 'error' },
  ignorePatterns: ['node_modules', 'dist', '.tollbook'],
  rules: {
    'typescript/no-explicit-any': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    'typescript/consistent-type-imports': 'error',
    // narrowing what JSON.parse and drivers return is stated by an assertion where a schema has checked it
    'typescript/no-unsafe-type-assertion': 'off',
    // methods of our interfaces are closures and use no `this`
    'typescript/unbound-method': 'off',
    // types count too: a cycle of types is a cycle for the reader
    'import/no-cycle': ['error', { ignoreTypes: false }],
    'no-console': 'error',
    'node/no-process-env': 'error',
    // steps that depend on each other are awaited one after the other
    'no-await-in-loop': 'off',
    'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
    'max-lines-per-function': ['error', { max: 90, skipBlankLines: true, skipComments: true }],
    // default exports of CommonJS packages carry their members
    'import/no-named-as-default-member': 'off',
    // an exhaustive switch returns on every path, which the rule does not see
    'typescript/consistent-return': 'off',
    // loops wait for variables that callbacks change
    'no-unmodified-loop-condition': 'off',
  },
  overrides: [
    ...places.filter((place) => !place.endsWith('.ts')).flatMap(boundariesOf),
    // programs for a person's own shell
    { files: ['examples/**'], rules: { 'no-console': 'off', 'node/no-process-env': 'off' } },
    { files: ['test/**', 'scripts/**'], rules: { 'max-lines-per-function': 'off', 'no-console': 'off' } },
  ],
});
