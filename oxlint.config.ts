import { readdirSync } from 'node:fs';
import path from 'node:path';
import { defineConfig, type OxlintOverride } from 'oxlint';

/** The wings of src/, in a line: each imports only from those before it, and from itself. ARCHITECTURE.md describes them. */
export const wings = [
  'base',
  'ledger',
  'payments',
  'calls',
  'accounts',
  'audit',
  'jobs',
  'chat',
  'finance',
  'web',
  'devnet',
  'app',
] as const;

const rules = ['values', 'errors', 'rules'];
const lower = [...rules, 'runtime', 'config', 'store', 'peers', 'metrics', 'traces'];
/** The layers inside a wing, and which layers of any wing each imports. Rules are pure; a use case knows neither workers nor HTTP. */
const layers: Readonly<Record<string, readonly string[]>> = {
  values: ['values'],
  errors: ['values', 'errors'],
  rules,
  runtime: [...rules, 'runtime'],
  config: [...rules, 'config'],
  store: [...rules, 'runtime', 'store'],
  peers: [...rules, 'runtime', 'config', 'peers'],
  metrics: lower,
  traces: lower,
  'use-cases': [...lower, 'use-cases'],
  workers: [...lower, 'use-cases', 'workers'],
  http: [...lower, 'use-cases', 'http'],
  // the customers' pages and the operators', made of the same parts
  pages: [...lower, 'use-cases', 'http', 'pages'],
  console: [...lower, 'use-cases', 'http', 'pages', 'console'],
  // what the commands of a wing share
  terminal: [...lower, 'use-cases', 'workers', 'http', 'terminal'],
  commands: [...lower, 'use-cases', 'workers', 'http', 'terminal', 'commands'],
};
/** Wings without these layers: composition and the local chain. */
const unlayered = ['devnet', 'app'];

interface Restriction {
  readonly group?: string[];
  readonly regex?: string;
  readonly message: string;
  readonly allowTypeImports?: boolean;
}

const sqlOnlyInStores: Restriction = {
  group: ['kysely*', 'pg'],
  allowTypeImports: true,
  message: 'SQL lives only in the stores of src/ and in migrations/',
};
const pure: Restriction = {
  group: ['node:fs', 'node:fs/**', 'node:net', 'node:http*', 'undici', 'fastify', 'pino'],
  message: 'rules and values are pure: no I/O',
};
const noDependencies: Restriction = {
  regex: '^[a-z@][a-z0-9@/._-]*$',
  message: 'the library for runner authors brings no dependencies along',
};
const outside: Readonly<Record<string, readonly Restriction[]>> = {
  values: [sqlOnlyInStores, pure],
  errors: [sqlOnlyInStores, pure],
  rules: [sqlOnlyInStores, pure],
  runtime: [noDependencies, sqlOnlyInStores],
  store: [],
  terminal: [],
  commands: [],
};
const outsideOfWing: Readonly<Record<string, readonly Restriction[]>> = {
  devnet: [],
  app: [],
  runner: [noDependencies],
};

/** All directories of src/: each wing, each layer and what is below them. */
const directories = readdirSync('src', { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => path.join(entry.parentPath, entry.name).slice('src/'.length));
const places = directories.filter((directory) => directory.split('/').length <= 2);

/** What a file of a directory may import: `wing/layer`, or a wing as a whole. */
function mayImport(wing: string, layer: string | undefined, place: string): boolean {
  const [toWing = '', toLayer] = place.split('/');
  // a library of its own: it must bring nothing else along
  if (wing === 'runner')
    return (
      toWing === 'runner' || (toWing === 'base' && ['values', 'errors', 'runtime'].includes(toLayer ?? ''))
    );
  if (toWing === 'runner') return false;
  const distance =
    wings.indexOf(wing as (typeof wings)[number]) - wings.indexOf(toWing as (typeof wings)[number]);
  if (distance < 0) return false;
  if (unlayered.includes(wing) || layer === undefined) return true;
  if (unlayered.includes(toWing) || toLayer === undefined) return false;
  const allowed = layers[layer];
  if (!allowed) throw new Error(`src/${wing}/${layer} is no layer of oxlint.config.ts`);
  return allowed.includes(toLayer);
}

/** A restriction compares the import as it is written, so each directory has an override of its own. */
function boundariesOf(directory: string): OxlintOverride {
  const [wing = '', layer] = directory.split('/');
  if (wing !== 'runner' && !wings.includes(wing as (typeof wings)[number]))
    throw new Error(`src/${wing} has no place among the wings of oxlint.config.ts`);
  const forbidden = places.filter((place) => {
    const isWing = !place.includes('/');
    // the linter recognises a wing with layers by its layers
    if (isWing && places.some((other) => other.startsWith(`${place}/`)) && !unlayered.includes(place))
      return false;
    if (!isWing && unlayered.includes(place.split('/')[0] ?? '')) return false;
    return !mayImport(wing, layer, place);
  });
  const up = (place: string): string => {
    const relative = path.relative(directory, place);
    return `${relative.startsWith('.') ? relative : `./${relative}`}/**`;
  };
  const boundaries: Restriction = {
    group: forbidden.map(up),
    message: `src/${directory} may not import this: see the wings and layers in oxlint.config.ts`,
  };
  const others = outsideOfWing[wing] ?? outside[layer ?? ''] ?? [sqlOnlyInStores];
  const patterns = [...(forbidden.length > 0 ? [boundaries] : []), ...others];
  return {
    files: [`src/${directory}/*.ts`],
    rules: { 'typescript/no-restricted-imports': patterns.length > 0 ? ['error', { patterns }] : 'off' },
  };
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
    ...directories.map(boundariesOf),
    // programs for a person's own shell
    { files: ['examples/**'], rules: { 'no-console': 'off', 'node/no-process-env': 'off' } },
    { files: ['test/**', 'scripts/**'], rules: { 'max-lines-per-function': 'off', 'no-console': 'off' } },
  ],
});
