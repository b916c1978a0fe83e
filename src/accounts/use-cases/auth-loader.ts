import type { Auth } from './auth.ts';
import { type ReachedProvider, reachProvider } from './auth-providers.ts';
import type { Identity } from './context.ts';

/** better-auth with the providers that can be reached; a load that needs providers tries the missing ones again. */
export interface AuthLoader {
  /** @param needsProviders whether the request cannot be served without the identity providers */
  load(needsProviders: boolean): Promise<Auth>;
  /** The next load sets better-auth up again, with the settings in force. */
  forget(): void;
}

const retryMs = 1_000;

/**
 * better-auth keeps the providers that it was set up with. So it only receives providers that have just answered, and is set up
 * again while some are missing.
 */
export function createAuthLoader(
  identity: Identity,
  createAuth: (identity: Identity, providers: readonly ReachedProvider[]) => Promise<Auth>,
): AuthLoader {
  const { providers } = identity.settings;
  let current: Promise<Auth> | undefined;
  /** What was begun before is not kept. */
  let forgotten = 0;
  let missing = 0;
  let builtAtMs = 0;

  const build = async (): Promise<Auth> => {
    builtAtMs = performance.now();
    const results = await Promise.all(providers.map((provider) => reachProvider(identity, provider)));
    const reached = results.filter((provider) => provider !== undefined);
    missing = providers.length - reached.length;
    return createAuth(identity, reached);
  };

  return {
    forget() {
      current = undefined;
      forgotten += 1;
    },
    async load(needsProviders) {
      const isDue = needsProviders && missing > 0 && performance.now() - builtAtMs > retryMs;
      if (current && !isDue) return current;
      const begunAt = forgotten;
      const building = build();
      // requests that need no provider continue with the current one
      current ??= building;
      try {
        await building;
        if (begunAt === forgotten) current = building;
      } catch (error) {
        if (current === building) current = undefined;
        throw error;
      }
      return building;
    },
  };
}
