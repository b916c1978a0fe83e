/** As far as tests use it; the package has no types of its own. */
declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http';

  export class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>);
    callback(): RequestListener;
    use(
      layer: (
        exchange: { readonly path: string; readonly body: unknown },
        next: () => Promise<void>,
      ) => unknown,
    ): void;
  }
}
