import { globSync } from 'node:fs';
import { builtinModules } from 'node:module';
import path from 'node:path';
import { scan } from 'rolldown/experimental';

/** What a program uses of a package. */
export interface UsedPackage {
  /** Paths in the package. */
  readonly files: Set<string>;
  /** The places of the packages that these files import. */
  readonly imports: Set<string>;
}

/**
 * The files to which the imports of the program in `dist` lead, by the place of their package, such as `node_modules/viem`. Only packages
 * in `bundled` are followed from the program, and from there all but those in `installed`. A file counts if Node would load it, whether or
 * not anything of it is used.
 */
export async function usedFiles(
  root: string,
  dist: string,
  { bundled, installed }: { readonly bundled: readonly string[]; readonly installed: readonly string[] },
): Promise<ReadonlyMap<string, UsedPackage>> {
  const found = new Map<string, UsedPackage>();
  const used = (place: string): UsedPackage => {
    const one = found.get(place) ?? { files: new Set(), imports: new Set() };
    found.set(place, one);
    return one;
  };
  await scan({
    input: globSync('**/*.js', { cwd: dist }).map((file) => path.join(dist, file)),
    platform: 'node',
    resolve: { mainFields: ['main'], conditionNames: ['node', 'module-sync'] },
    treeshake: false,
    logLevel: 'silent',
    plugins: [
      {
        name: 'used-files',
        async resolveId(specifier, importer, options) {
          const external = { id: specifier, external: true };
          if (specifier.startsWith('node:') || builtinModules.includes(specifier)) return external;
          const by = importer === undefined ? undefined : placeOf(root, importer);
          const isOfProgram = by === undefined && !/^[./]/.test(specifier);
          // the packed program is not next to its packages
          const from = isOfProgram ? path.join(root, 'package.json') : importer;
          const resolved = await this.resolve(specifier, from, { ...options, skipSelf: true });
          // the peer of a feature, which is absent
          if (!resolved) return external;
          const to = placeOf(root, resolved.id);
          if (!to) return resolved;
          if (by && by.place !== to.place) used(by.place).imports.add(to.place);
          const isBundled = isOfProgram
            ? bundled.includes(nameOf(to.place))
            : !installed.includes(to.place.replace(/^node_modules\//, ''));
          return isBundled ? resolved : external;
        },
        load(id) {
          const at = placeOf(root, id);
          if (at) used(at.place).files.add(at.file);
          return undefined;
        },
      },
    ],
  });
  const absent = bundled.find((name) => !found.has(`node_modules/${name}`));
  if (absent !== undefined)
    throw new Error(`the program imports no file of ${absent} in ${root}/node_modules`);
  return found;
}

/** Where a file of `root/node_modules` is: its package, and its path in it. */
export function placeOf(
  root: string,
  file: string,
): { readonly place: string; readonly file: string } | undefined {
  const relative = path.relative(root, file);
  const [, place, rest] =
    /^(node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+)\/(.*)$/.exec(relative) ?? [];
  return place === undefined || rest === undefined ? undefined : { place, file: rest };
}

/** The name of the package in this place. */
export function nameOf(place: string): string {
  return place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
}
