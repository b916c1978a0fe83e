import type { Environment } from '../../base/config/environment.ts';
import { isReadableByAll, reasonOf } from '../../base/config/files.ts';
import { loadConfig, type LoadedConfig } from '../../base/config/load.ts';
import { ConfigError, type Mistake } from '../../base/config/mistakes.ts';
import { type CheckResult, fail, ok, warn } from './check-result.ts';

const what = 'configuration';

export interface ReadConfiguration {
  /** Undefined if it has mistakes. */
  readonly loaded: LoadedConfig | undefined;
  readonly results: readonly CheckResult[];
}

/** Reads the operator's file as a gateway does. */
export async function readConfiguration(file: string, env: Environment): Promise<ReadConfiguration> {
  try {
    const loaded = await loadConfig(file, env);
    const warnings = loaded.warnings.map((warning) =>
      warn(
        what,
        warning,
        'Change the key that the line names (docs/configuration-reference.md), or keep it if you accept that.',
      ),
    );
    return { loaded, results: warnings.length > 0 ? warnings : [ok(what, `${file} is valid`)] };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const results = [
      ...mistakesOf(error, what),
      warn(
        'everything that depends on it',
        'is not checked',
        'Correct the configuration, and run this again.',
      ),
    ];
    return { loaded: undefined, results };
  }
}

/** One result a mistake, each with its place. */
export function mistakesOf({ mistakes }: ConfigError, about: string): readonly CheckResult[] {
  return mistakes.map((mistake) => fail(about, `${mistake.path} ${mistake.message}`, repairOf(mistake)));
}

function repairOf({ path, file, line }: Mistake): string {
  if (file === 'environment') return `Correct ${path} in the environment of the gateway and of this command.`;
  const place = line === undefined ? file : `${file}:${line}`;
  return `Correct ${path === '' ? 'it' : path} in ${place} (docs/configuration-reference.md).`;
}

/** Secrets that are in files: whether other users of this machine can read them. */
export async function checkSecretFiles(files: readonly string[]): Promise<readonly CheckResult[]> {
  if (files.length === 0) return [];
  const about = 'secret files';
  const found = await Promise.all(
    files.map(async (file): Promise<CheckResult | undefined> => {
      try {
        if (!(await isReadableByAll(file))) return undefined;
        return warn(about, `every user of this machine can read ${file}`, `Run chmod o= ${file}`);
      } catch (error) {
        return warn(
          about,
          `the rights of ${file} cannot be read: ${reasonOf(error)}`,
          `Let this user read ${file}.`,
        );
      }
    }),
  );
  const wrong = found.filter((result) => result !== undefined);
  return wrong.length > 0 ? wrong : [ok(about, 'other users of this machine cannot read them')];
}
