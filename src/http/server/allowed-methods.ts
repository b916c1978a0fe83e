import type { FastifyInstance } from 'fastify';

/**
 * Follows the routes that are registered on `app` from now on. Returns the value of `Allow` for a path that has some with other
 * methods; undefined for an unknown path.
 */
export function followRoutes(app: FastifyInstance): (url: string) => string | undefined {
  const routes = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>();
  app.addHook('onRoute', ({ url, method }) => {
    const route = routes.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
    routes.set(url, route);
    for (const each of [method].flat()) route.methods.add(each);
  });
  return (url) => {
    const [path = ''] = url.split('?', 1);
    const methods = [...routes.values()].flatMap((route) =>
      route.pattern.test(path) ? [...route.methods] : [],
    );
    return methods.length === 0 ? undefined : [...new Set(methods)].toSorted().join(', ');
  };
}

/** Parameters are one segment, and a star is the rest. */
function patternOf(url: string): RegExp {
  const escaped = url.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`^${escaped.replaceAll(/:\w+/g, '[^/]+').replace('*', '.*')}$`);
}
