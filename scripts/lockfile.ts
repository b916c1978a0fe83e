/** What the checks read of `package-lock.json`. */
export interface Lockfile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface LockedPackage {
  readonly name?: string;
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly license?: string;
  readonly hasInstallScript?: boolean;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly optional?: boolean;
  readonly link?: boolean;
  readonly inBundle?: boolean;
}

export interface Manifest {
  /** Whether each package that has an install script may run it, by name. */
  readonly allowScripts: Readonly<Record<string, boolean>>;
}

const registry = 'https://registry.npmjs.org/';

/** What is wrong with a lockfile; empty where nothing is. */
export function lockfileFaults(lockfile: Lockfile, { allowScripts }: Manifest): string[] {
  const packages = installed(lockfile);
  const faults = packages.flatMap(({ name, entry }) => {
    const own: string[] = [];
    if (entry.inBundle !== true && !/^sha512-[A-Za-z0-9+/]{86}==$/.test(entry.integrity ?? ''))
      own.push(`${name} has no SHA-512 integrity: install it again from the registry`);
    if (entry.link === true || (entry.resolved !== undefined && !entry.resolved.startsWith(registry)))
      own.push(`${name} does not come from ${registry}: ${entry.resolved ?? 'a link'}`);
    if (entry.hasInstallScript === true && !Object.hasOwn(allowScripts, name))
      own.push(`${name} runs a script when it is installed: allow or forbid it by name in allowScripts`);
    return own;
  });
  const withScripts = new Set(packages.flatMap(({ name, entry }) => (entry.hasInstallScript ? [name] : [])));
  const needless = Object.keys(allowScripts).filter((name) => !withScripts.has(name));
  return [...faults, ...needless.map((name) => `allowScripts names ${name}, which has no install script`)];
}

/** The names of the packages that the published package brings: those of every platform, and those of some or of none. */
export function productionPackages(lockfile: Lockfile): {
  readonly required: readonly string[];
  readonly optional: readonly string[];
} {
  const production = installed(lockfile).filter(({ entry }) => !entry.dev && !entry.devOptional);
  const namesOf = (isOptional: boolean): string[] =>
    production.flatMap(({ name, entry }) => ((entry.optional ?? false) === isOptional ? [name] : []));
  return { required: namesOf(false), optional: namesOf(true) };
}

/** The packages of production by their licence. */
export function licencesOf(lockfile: Lockfile): ReadonlyMap<string, readonly string[]> {
  const byLicence = new Map<string, string[]>();
  for (const { name, entry } of installed(lockfile)) {
    if (entry.dev || entry.devOptional) continue;
    const licence = entry.license ?? 'none stated';
    byLicence.set(licence, [...(byLicence.get(licence) ?? []), `${name} ${entry.version ?? ''}`.trim()]);
  }
  return new Map([...byLicence].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function installed({ packages }: Lockfile): { readonly name: string; readonly entry: LockedPackage }[] {
  return Object.entries(packages).flatMap(([place, entry]) => {
    const at = place.lastIndexOf('node_modules/');
    return at < 0 ? [] : [{ name: entry.name ?? place.slice(at + 'node_modules/'.length), entry }];
  });
}
