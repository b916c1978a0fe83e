/** Runs with the arguments after its name; returns the exit code. */
export interface CommandModule {
  run(args: readonly string[]): Promise<number>;
}

interface Command {
  readonly summary: string;
  readonly usage: string;
  load(): Promise<CommandModule>;
}

/** Every command, loaded only when it is asked for. */
export const commands: Readonly<Record<string, Command | undefined>> & Record<string, Command> = {
  start: {
    summary: 'runs everything on this machine: database, devnet, gateway, and pays for one job',
    usage:
      'tollbook start [--fresh] [--dir .tollbook] [--port 8402]\n  --fresh  begins anew instead of going on where the last run stopped',
    load: () => import('./start.ts'),
  },
  devnet: {
    summary: 'runs only the devnet: chain, tokens, facilitator, example runner',
    usage: 'tollbook devnet [--dir .tollbook]',
    load: () => import('./devnet.ts'),
  },
  pay: {
    summary: 'pays for a job on the devnet and waits for its result',
    usage: "tollbook pay SERVICE JOB 'BODY' [--dir .tollbook]",
    load: () => import('./pay.ts'),
  },
  serve: {
    summary: 'serves a gateway',
    usage:
      'tollbook serve --config FILE\n  needs DATABASE_URL; exit code 78 where the file has mistakes\n' +
      '  SIGHUP loads prices, rates, policies and tokens anew; SIGTERM finishes what was taken',
    load: () => import('./serve.ts'),
  },
  migrate: {
    summary: 'brings the database up to this version',
    usage: 'tollbook migrate\n  needs DATABASE_URL',
    load: () => import('./migrate.ts'),
  },
  'config check': {
    summary: 'checks a configuration and names every mistake',
    usage: 'tollbook config check FILE\n  exit code 0, or 78 where the file has mistakes',
    load: () => import('./config-check.ts'),
  },
  'auth-dry-run': {
    summary: 'signs a request as a caller and asks what a restricted job would say to it',
    usage:
      "tollbook auth-dry-run SERVICE JOB 'BODY' [--url http://127.0.0.1:8402] [--key-file FILE] [--nonce TEXT] [--ttl-secs 300]\n" +
      '  the key is read from TOLLBOOK_CALLER_KEY or from the file, never from an argument;\n' +
      '  settles nothing, uses no nonce up; exit code 0 where the request would be allowed, else 1',
    load: () => import('./auth-dry-run.ts'),
  },
  settlements: {
    summary: 'lists the payments whose settlement nobody knows the outcome of',
    usage: 'tollbook settlements\n  needs DATABASE_URL',
    load: () => import('./settlements.ts'),
  },
  'settlements resolve': {
    summary: "records an operator's decision on an open settlement, with its evidence",
    usage:
      "tollbook settlements resolve QUOTE_DIGEST (--paid TRANSACTION | --unpaid) --evidence 'TEXT' --by NAME [--config FILE]\n" +
      '  with --config the chain is asked too, and must not say otherwise; needs DATABASE_URL',
    load: () => import('./settlements-resolve.ts'),
  },
  'calls dead': {
    summary: 'lists the calls that could not be delivered',
    usage: 'tollbook calls dead\n  needs DATABASE_URL',
    load: () => import('./calls-dead.ts'),
  },
  'calls requeue': {
    summary: 'puts a dead-lettered call back in the queue',
    usage: 'tollbook calls requeue CALL_ID\n  needs DATABASE_URL',
    load: () => import('./calls-requeue.ts'),
  },
  'tokens create': {
    summary: "makes an operator's bearer token",
    usage:
      'tollbook tokens create NAME --scope audit:read [--scope calls:read] [--scope calls:write] [--days N]\n' +
      '  prints the token once; needs DATABASE_URL',
    load: () => import('./tokens-create.ts'),
  },
  'tokens list': {
    summary: 'lists the operator tokens, never the tokens themselves',
    usage: 'tollbook tokens list\n  needs DATABASE_URL',
    load: () => import('./tokens-list.ts'),
  },
  'tokens revoke': {
    summary: 'ends a token, in every process at once',
    usage: 'tollbook tokens revoke ID\n  needs DATABASE_URL',
    load: () => import('./tokens-revoke.ts'),
  },
  'runners resume': {
    summary: 'lets calls go to a runner that answered 410 again',
    usage: 'tollbook runners resume NAME\n  needs DATABASE_URL',
    load: () => import('./runners-resume.ts'),
  },
};
