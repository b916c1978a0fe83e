import type { FastifyInstance } from 'fastify';

export interface KnownRoutes {
  /** The value of `Allow` for a path that has some with other methods; undefined for an unknown path. */
  allowedAt(url: string): string | undefined;
  /** The first segments of all paths. */
  roots(): ReadonlySet<string>;
}

/** Follows the routes that are registered on `app` from now on. */
export function followRoutes(app: FastifyInstance): KnownRoutes {
  const routes = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>();
  app.addHook('onRoute', ({ url, method }) => {
    const route = routes.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
    routes.set(url, route);
    for (const each of [method].flat()) route.methods.add(each);
  });
  return {
    allowedAt(url) {
      const [path = ''] = url.split('?', 1);
      const methods = [...routes.values()].flatMap((route) =>
        route.pattern.test(path) ? [...route.methods] : [],
      );
      return methods.length === 0 ? undefined : [...new Set(methods)].toSorted().join(', ');
    },
    roots: () => new Set([...routes.keys()].map(rootOf)),
  };
}

/** The first segment of a path, empty for `/`. */
export function rootOf(url: string): string {
  return /^\/([^/?]*)/.exec(url)?.[1] ?? '';
}

/** Parameters are one segment, and a star is the rest. */
function patternOf(url: string): RegExp {
  const escaped = url.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`^${escaped.replaceAll(/:\w+/g, '[^/]+').replace('*', '.*')}$`);
}
